#include "netns/nl/host_use.h"

#include <linux/rtnetlink.h>

namespace railhead {

bool IsOfHost(const IpPrefix& address) {
  return !(address.address.IsV6() && address.address.IsLinkLocal());
}

bool IsOfHost(const Route& route) {
  if (route.protocol == RTPROT_RA) return route.destination.length == 0;
  return route.protocol != RTPROT_KERNEL;
}

}  // namespace railhead

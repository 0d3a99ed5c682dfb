// Announces addresses to all nodes on a link.
//
// An announcement is a gratuitous ARP request or an unsolicited neighbour advertisement (frames.h). A packet
// socket that is bound to the interface sends it. So it goes out by that NIC whatever the routes say; with
// VLAN set by the PF the NIC tags it.
// Threads: any; the socket is opened by the caller's namespace handle.
#pragma once

#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

// One announcement for each address, from link `index` of `ns`.
Result<void> Announce(const NetNs& ns, int index, const MacAddress& mac,
                      const std::vector<IpAddress>& addresses);

}  // namespace railhead

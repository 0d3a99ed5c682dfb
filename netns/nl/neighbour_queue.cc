#include "netns/nl/neighbour_queue.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <string>

#include "netns/nl/message.h"
#include "netns/nl/socket.h"

namespace railhead {

Result<void> LimitNeighbourQueue(const NetNs& ns, int index, int family, std::uint32_t bytes) {
  nl::Message message(RTM_SETNEIGHTBL, 0);
  ndtmsg header{};
  header.ndtm_family = static_cast<std::uint8_t>(family);
  message.Header(header);
  message.PutString(NDTA_NAME, family == AF_INET ? "arp_cache" : "ndisc_cache");
  {
    const nl::Message::Nest parameters(message, NDTA_PARMS);
    message.PutU32(NDTPA_IFINDEX, static_cast<std::uint32_t>(index));
    message.PutU32(NDTPA_QUEUE_LENBYTES, bytes);
  }
  const auto set = [&]() -> Result<void> { return RH_TRY(nl::Socket::Open(NETLINK_ROUTE)).Request(message); };
  RH_TRY_WRAP(OpenSocketsIn(ns, set),
              "limiting the queue of neighbours of interface " + std::to_string(index));
  return {};
}

}  // namespace railhead

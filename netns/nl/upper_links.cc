#include "netns/nl/upper_links.h"

#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "netns/nl/message.h"
#include "netns/nl/netlink_route.h"
#include "netns/nl/socket.h"

namespace railhead {
namespace {

// Whatever priority the packet itself has: rt_tos2priority() makes one of its traffic class.
void PutPriority(nl::Message& message, std::uint32_t priority) {
  constexpr std::uint32_t kPriorities = 8;
  const nl::Message::Nest map(message, IFLA_VLAN_EGRESS_QOS);
  for (std::uint32_t from = 0; from < kPriorities; ++from)
    message.PutStruct(IFLA_VLAN_QOS_MAPPING, ifla_vlan_qos_mapping{from, priority});
}

nl::Message UpperLinkMessage(int lower, const UpperLink& upper, const NetNs& target) {
  nl::Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  message.Header(ifinfomsg{});
  message.PutString(IFLA_IFNAME, upper.name);
  message.PutU32(IFLA_LINK, static_cast<std::uint32_t>(lower));
  message.PutU32(IFLA_NET_NS_FD, static_cast<std::uint32_t>(target.fd()));
  if (!upper.mac.IsZero()) message.Put(IFLA_ADDRESS, {upper.mac.bytes.data(), upper.mac.bytes.size()});
  const nl::Message::Nest info(message, IFLA_LINKINFO);
  message.PutString(IFLA_INFO_KIND, upper.vlan ? "vlan" : "macvlan");
  const nl::Message::Nest data(message, IFLA_INFO_DATA);
  if (upper.vlan) {
    message.PutStruct(IFLA_VLAN_ID, static_cast<std::uint16_t>(*upper.vlan));
    if (upper.priority != 0) PutPriority(message, static_cast<std::uint32_t>(upper.priority));
  } else {
    message.PutU32(IFLA_MACVLAN_MODE, MACVLAN_MODE_BRIDGE);
  }
  return message;
}

}  // namespace

Result<int> AddUpperLink(const NetNs& ns, int lower, const UpperLink& upper, const NetNs& target) {
  const std::string what = "making " + upper.name + " on interface " + std::to_string(lower);
  const auto add = [&]() -> Result<void> {
    auto socket = RH_TRY(nl::Socket::Open(NETLINK_ROUTE));
    auto message = UpperLinkMessage(lower, upper, target);
    return socket.Request(message);
  };
  RH_TRY_WRAP(OpenSocketsIn(ns, add), what);
  const auto route = RH_TRY(OpenNetlinkRoute(target));
  const auto link = RH_TRY(route->FindLink(upper.name));
  if (!link) return Fail(ErrorCode::kNotFound, what + ": it is not there");
  return link->index;
}

}  // namespace railhead

namespace railhead::nl {
namespace {

constexpr std::uint32_t kAboveEveryMtu = 65535;

// NLM_F_REPLACE: an interface that the socket's namespace has is refused by its name before all else. One
// queue: the kernel makes all of an interface's queues before it asks the driver, by default as many as the
// NIC has.
Message UpperToRefuse(int lower) {
  Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_REPLACE);
  message.Header(ifinfomsg{});
  message.PutU32(IFLA_LINK, static_cast<std::uint32_t>(lower));
  message.PutU32(IFLA_NUM_TX_QUEUES, 1);
  message.PutU32(IFLA_NUM_RX_QUEUES, 1);
  return message;
}

int RefusalOf(Socket& socket, Message& message) {
  const auto made = socket.Request(message);
  return made ? 0 : made.error().sys_errno;
}

// macvlan_common_newlink needs the link's frame handler, which one module can have (EBUSY: ipvlan, bridge,
// bond, macsec). A passthru macvlan has to be the only macvlan (EINVAL). Only then register_netdevice finds
// that the name is taken (EEXIST).
Result<bool> HasFrameHandler(Socket& socket, int lower, const NetNs& elsewhere, const std::string& taken) {
  Message message = UpperToRefuse(lower);
  message.PutString(IFLA_IFNAME, taken);
  message.PutU32(IFLA_NET_NS_FD, static_cast<std::uint32_t>(elsewhere.fd()));
  {
    const Message::Nest info(message, IFLA_LINKINFO);
    message.PutString(IFLA_INFO_KIND, "macvlan");
    const Message::Nest data(message, IFLA_INFO_DATA);
    message.PutU32(IFLA_MACVLAN_MODE, MACVLAN_MODE_PASSTHRU);
  }
  const auto made = socket.Request(message);
  const int refusal = made ? 0 : made.error().sys_errno;
  if (refusal == EEXIST) return false;
  if (refusal == EBUSY || refusal == EINVAL) return true;
  if (refusal != 0) return Fail(made.error());
  // The name was free: the macvlan is there.
  const auto route = RH_TRY(OpenNetlinkRoute(elsewhere));
  const auto link = RH_TRY(route->FindLink(taken));
  if (link) RH_TRY(route->DeleteLink(link->index));
  return Fail(ErrorCode::kNotFound, "no interface of " + elsewhere.path() + " has the name " + taken);
}

// A VLAN with ID 0 sends and receives what switches take for untagged frames. vlan_newlink looks for one of
// the same ID (EEXIST) before it looks at the MTU (EINVAL).
bool HasPriorityVlan(Socket& socket, int lower, std::uint16_t protocol) {
  Message message = UpperToRefuse(lower);
  message.PutU32(IFLA_MTU, kAboveEveryMtu);
  {
    const Message::Nest info(message, IFLA_LINKINFO);
    message.PutString(IFLA_INFO_KIND, "vlan");
    const Message::Nest data(message, IFLA_INFO_DATA);
    message.PutStruct(IFLA_VLAN_ID, std::uint16_t{0});
    message.PutStruct(IFLA_VLAN_PROTOCOL, htons(protocol));
  }
  return RefusalOf(socket, message) == EEXIST;
}

}  // namespace

Result<bool> HasUppers(Socket& socket, int lower, const NetNs& elsewhere, const std::string& taken) {
  if (RH_TRY(HasFrameHandler(socket, lower, elsewhere, taken))) return true;
  // The question would load the module 8021q, which changes the filter of every NIC.
  if (::access("/proc/net/vlan", F_OK) != 0) return false;
  return HasPriorityVlan(socket, lower, ETH_P_8021Q) || HasPriorityVlan(socket, lower, ETH_P_8021AD);
}

}  // namespace railhead::nl

#include "netns/nl/link_queries.h"

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <cerrno>
#include <cstdint>

#include "netns/nl/netlink_route.h"
#include "netns/nl/socket.h"
#include "netns/nl/vf_messages.h"

namespace railhead {

Result<std::vector<VfState>> ListVfs(const std::string& pf) {
  const std::string what = "asking " + pf + " for its VFs";
  const unsigned index = ::if_nametoindex(pf.c_str());
  if (index == 0) return FailSys(errno, what);
  nl::Socket socket = RH_TRY_WRAP(nl::Socket::Open(NETLINK_ROUTE), what);
  nl::Message message = nl::GetVfsMessage(static_cast<int>(index));
  std::vector<VfState> vfs;
  RH_TRY_WRAP(socket.Get(message, [&](const nl::Received& received) { vfs = nl::ParseVfs(received); }), what);
  return vfs;
}

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

bool IsOfHost(const IpPrefix& address) {
  return !(address.address.IsV6() && address.address.IsLinkLocal());
}

bool IsOfHost(const Route& route) {
  if (route.protocol == RTPROT_RA) return route.destination.length == 0;
  return route.protocol != RTPROT_KERNEL;
}

}  // namespace railhead

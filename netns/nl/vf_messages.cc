#include "netns/nl/vf_messages.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "netns/nl/netlink_route.h"
#include "netns/nl/socket.h"

namespace railhead::nl {
namespace {

// What a driver does not report is -1 in these fields (rtnl_fill_vfinfo).
std::optional<bool> Flag(std::uint32_t setting) {
  if (setting > 1) return std::nullopt;
  return setting == 1;
}

std::optional<VfLinkState> LinkState(std::uint32_t state) {
  if (state > IFLA_VF_LINK_STATE_DISABLE) return std::nullopt;
  return static_cast<VfLinkState>(state);
}

void StoreVlan(VfState& state, std::uint32_t vlan, std::uint32_t qos) {
  state.vlan = static_cast<int>(vlan);
  state.qos = static_cast<int>(qos);
}

void StoreVlanList(VfState& state, BytesView list) {
  ForEachAttribute(list, [&](int type, BytesView payload) {
    const auto info = ReadStruct<ifla_vf_vlan_info>(payload);
    if (type != IFLA_VF_VLAN_INFO || !info) return;
    StoreVlan(state, info->vlan, info->qos);
    // Zero: a driver that knows no protocols.
    if (info->vlan_proto != 0) state.vlan_proto = ntohs(info->vlan_proto);
  });
}

void StoreRate(VfState& state, const std::optional<ifla_vf_rate>& rate) {
  if (!rate) return;
  state.min_tx_rate = rate->min_tx_rate;
  state.max_tx_rate = rate->max_tx_rate;
}

void StoreVfAttribute(VfState& state, int type, BytesView payload) {
  switch (type) {
    case IFLA_VF_MAC:
      if (const auto mac = ReadStruct<ifla_vf_mac>(payload)) {
        state.vf = static_cast<int>(mac->vf);
        std::copy_n(mac->mac, state.mac.bytes.size(), state.mac.bytes.begin());
      }
      break;
    case IFLA_VF_VLAN:
      if (const auto vlan = ReadStruct<ifla_vf_vlan>(payload)) StoreVlan(state, vlan->vlan, vlan->qos);
      break;
    case IFLA_VF_VLAN_LIST:
      StoreVlanList(state, payload);
      break;
    case IFLA_VF_RATE:
      StoreRate(state, ReadStruct<ifla_vf_rate>(payload));
      break;
    case IFLA_VF_SPOOFCHK:
      if (const auto spoofchk = ReadStruct<ifla_vf_spoofchk>(payload))
        state.spoofchk = Flag(spoofchk->setting);
      break;
    case IFLA_VF_TRUST:
      if (const auto trust = ReadStruct<ifla_vf_trust>(payload)) state.trust = Flag(trust->setting);
      break;
    case IFLA_VF_LINK_STATE:
      if (const auto link = ReadStruct<ifla_vf_link_state>(payload)) {
        state.link_state = LinkState(link->link_state);
      }
      break;
    default:
      break;
  }
}

VfState ParseVfInfo(BytesView attributes) {
  VfState state;
  state.vf = -1;
  ForEachAttribute(attributes, [&](int type, BytesView payload) { StoreVfAttribute(state, type, payload); });
  return state;
}

// `put` writes the IFLA_VF_* attribute.
template <typename Put>
VfStep Step(int pf_index, std::string what, Put put) {
  Message message(RTM_SETLINK, 0);
  ifinfomsg header{};
  header.ifi_family = AF_UNSPEC;
  header.ifi_index = pf_index;
  message.Header(header);
  {
    const Message::Nest list(message, IFLA_VFINFO_LIST);
    const Message::Nest info(message, IFLA_VF_INFO);
    put(message);
  }
  return {std::move(what), std::move(message)};
}

VfStep VlanStep(int pf_index, std::uint32_t vf, const VfChange::Vlan& vlan) {
  const auto id = static_cast<std::uint32_t>(vlan.id);
  const auto qos = static_cast<std::uint32_t>(vlan.qos);
  std::string what = "VLAN " + std::to_string(vlan.id) + ", QoS " + std::to_string(vlan.qos);
  if (vlan.proto == ETH_P_8021Q) {
    return Step(pf_index, std::move(what), [&](Message& message) {
      message.PutStruct(IFLA_VF_VLAN, ifla_vf_vlan{vf, id, qos});
    });
  }
  what += vlan.proto == ETH_P_8021AD ? ", 802.1ad" : ", protocol " + std::to_string(vlan.proto);
  return Step(pf_index, std::move(what), [&](Message& message) {
    const Message::Nest list(message, IFLA_VF_VLAN_LIST);
    message.PutStruct(IFLA_VF_VLAN_INFO, ifla_vf_vlan_info{vf, id, qos, htons(vlan.proto)});
  });
}

VfStep MacStep(int pf_index, std::uint32_t vf, const MacAddress& address) {
  return Step(pf_index, "MAC " + address.ToString(), [&](Message& message) {
    ifla_vf_mac mac{};
    mac.vf = vf;
    std::copy(address.bytes.begin(), address.bytes.end(), mac.mac);
    message.PutStruct(IFLA_VF_MAC, mac);
  });
}

std::string NameOf(VfLinkState state) {
  switch (state) {
    case VfLinkState::kAuto:
      return "auto";
    case VfLinkState::kEnable:
      return "enable";
    case VfLinkState::kDisable:
      break;
  }
  return "disable";
}

std::string OnOff(bool on) {
  return on ? "on" : "off";
}

}  // namespace

Message GetVfsMessage(int pf_index) {
  Message message(RTM_GETLINK, 0);
  ifinfomsg header{};
  header.ifi_family = AF_UNSPEC;
  header.ifi_index = pf_index;
  message.Header(header);
  // Without statistics, which would make the answer of a PF with many VFs
  // larger than an attribute can be (64 KiB).
  message.PutU32(IFLA_EXT_MASK, RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS);
  return message;
}

std::vector<VfState> ParseVfs(const Received& received) {
  std::vector<VfState> vfs;
  BytesView rest = received.payload;
  if (received.type != RTM_NEWLINK || !TakeHeader<ifinfomsg>(rest)) return vfs;
  ForEachAttribute(rest, [&](int type, BytesView list) {
    if (type != IFLA_VFINFO_LIST) return;
    ForEachAttribute(list, [&](int item, BytesView attributes) {
      if (item != IFLA_VF_INFO) return;
      const VfState state = ParseVfInfo(attributes);
      if (state.vf >= 0) vfs.push_back(state);
    });
  });
  return vfs;
}

std::optional<VfState> ParseVf(const Received& received, int vf) {
  for (const VfState& state : ParseVfs(received)) {
    if (state.vf == vf) return state;
  }
  return std::nullopt;
}

std::vector<VfStep> SetVfMessages(int pf_index, int vf_number, const VfChange& change) {
  const auto vf = static_cast<std::uint32_t>(vf_number);
  std::vector<VfStep> steps;
  if (change.mac) steps.push_back(MacStep(pf_index, vf, *change.mac));
  if (change.vlan) steps.push_back(VlanStep(pf_index, vf, *change.vlan));
  if (change.spoofchk) {
    steps.push_back(Step(pf_index, "spoofchk " + OnOff(*change.spoofchk), [&](Message& message) {
      message.PutStruct(IFLA_VF_SPOOFCHK, ifla_vf_spoofchk{vf, *change.spoofchk ? 1U : 0U});
    }));
  }
  if (change.trust) {
    steps.push_back(Step(pf_index, "trust " + OnOff(*change.trust), [&](Message& message) {
      message.PutStruct(IFLA_VF_TRUST, ifla_vf_trust{vf, *change.trust ? 1U : 0U});
    }));
  }
  if (change.link_state) {
    steps.push_back(Step(pf_index, "link_state " + NameOf(*change.link_state), [&](Message& message) {
      message.PutStruct(IFLA_VF_LINK_STATE,
                        ifla_vf_link_state{vf, static_cast<std::uint32_t>(*change.link_state)});
    }));
  }
  if (change.rate) {
    const std::string what = "min_tx_rate " + std::to_string(change.rate->min) + ", max_tx_rate " +
                             std::to_string(change.rate->max) + " Mbit/s";
    steps.push_back(Step(pf_index, what, [&](Message& message) {
      message.PutStruct(IFLA_VF_RATE, ifla_vf_rate{vf, change.rate->min, change.rate->max});
    }));
  }
  return steps;
}

}  // namespace railhead::nl

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

#include "netns/nl/vf_messages.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "netns/base/addresses.h"
#include "netns/nl/attributes.h"

namespace railhead::nl {
namespace {

// A setting that a driver does not report is -1 in these fields (rtnl_fill_vfinfo).
std::optional<bool> Flag(std::uint32_t setting) {
  if (setting > 1) return std::nullopt;
  return setting == 1;
}

std::optional<VfLinkState> LinkState(std::uint32_t state) {
  if (state > IFLA_VF_LINK_STATE_DISABLE) return std::nullopt;
  return static_cast<VfLinkState>(state);
}

void StoreVlanList(VfSettings& settings, BytesView list) {
  ForEachAttribute(list, [&](int type, BytesView payload) {
    const auto info = ReadStruct<ifla_vf_vlan_info>(payload);
    if (type != IFLA_VF_VLAN_INFO || !info) return;
    // Zero: a driver that knows no protocols.
    const std::uint16_t proto = info->vlan_proto != 0 ? ntohs(info->vlan_proto) : kVlanProto8021q;
    settings.vlan = VfVlan{static_cast<int>(info->vlan), static_cast<int>(info->qos), proto};
  });
}

void StoreVfAttribute(int& vf, VfSettings& settings, int type, BytesView payload) {
  switch (type) {
    case IFLA_VF_MAC:
      if (const auto mac = ReadStruct<ifla_vf_mac>(payload)) {
        vf = static_cast<int>(mac->vf);
        auto& bytes = settings.mac.emplace().bytes;
        std::copy_n(mac->mac, bytes.size(), bytes.begin());
      }
      break;
    case IFLA_VF_VLAN:
      if (const auto vlan = ReadStruct<ifla_vf_vlan>(payload); vlan && !settings.vlan)
        settings.vlan = VfVlan{static_cast<int>(vlan->vlan), static_cast<int>(vlan->qos)};
      break;
    case IFLA_VF_VLAN_LIST:
      StoreVlanList(settings, payload);
      break;
    case IFLA_VF_RATE:
      if (const auto rate = ReadStruct<ifla_vf_rate>(payload))
        settings.rate = VfRate{rate->min_tx_rate, rate->max_tx_rate};
      break;
    case IFLA_VF_SPOOFCHK:
      if (const auto spoofchk = ReadStruct<ifla_vf_spoofchk>(payload))
        settings.spoofchk = Flag(spoofchk->setting);
      break;
    case IFLA_VF_TRUST:
      if (const auto trust = ReadStruct<ifla_vf_trust>(payload)) settings.trust = Flag(trust->setting);
      break;
    case IFLA_VF_LINK_STATE:
      if (const auto link = ReadStruct<ifla_vf_link_state>(payload))
        settings.link_state = LinkState(link->link_state);
      break;
    default:
      break;
  }
}

// `put` writes the IFLA_VF_* attribute.
template <typename Value, typename Put>
VfStep Step(int pf_index, const char* key, const Value& value, Put put) {
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
  return {std::string(key) + " " + InWords(value), std::move(message)};
}

void PutMac(Message& message, std::uint32_t vf, const MacAddress& address) {
  ifla_vf_mac mac{};
  mac.vf = vf;
  std::copy(address.bytes.begin(), address.bytes.end(), mac.mac);
  message.PutStruct(IFLA_VF_MAC, mac);
}

void PutVlan(Message& message, std::uint32_t vf, const VfVlan& vlan) {
  const auto id = static_cast<std::uint32_t>(vlan.id);
  const auto qos = static_cast<std::uint32_t>(vlan.qos);
  if (vlan.proto == kVlanProto8021q) return message.PutStruct(IFLA_VF_VLAN, ifla_vf_vlan{vf, id, qos});
  const Message::Nest list(message, IFLA_VF_VLAN_LIST);
  message.PutStruct(IFLA_VF_VLAN_INFO, ifla_vf_vlan_info{vf, id, qos, htons(vlan.proto)});
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

std::map<int, VfSettings> ParseVfs(const Received& received) {
  std::map<int, VfSettings> vfs;
  BytesView rest = received.payload;
  if (received.type != RTM_NEWLINK || !TakeHeader<ifinfomsg>(rest)) return vfs;
  ForEachAttribute(rest, [&](int type, BytesView list) {
    if (type != IFLA_VFINFO_LIST) return;
    ForEachAttribute(list, [&](int item, BytesView attributes) {
      if (item != IFLA_VF_INFO) return;
      int vf = -1;
      VfSettings settings;
      ForEachAttribute(attributes, [&](int setting, BytesView payload) {
        StoreVfAttribute(vf, settings, setting, payload);
      });
      if (vf >= 0) vfs.emplace(vf, settings);
    });
  });
  return vfs;
}

std::vector<VfStep> SetVfMessages(int pf_index, int vf_number, const VfSettings& change) {
  const auto vf = static_cast<std::uint32_t>(vf_number);
  std::vector<VfStep> steps;
  const auto add = [&](const char* key, const auto& value, auto put) {
    if (value) steps.push_back(Step(pf_index, key, *value, [&](Message& message) { put(message, *value); }));
  };
  add("mac", change.mac, [&](Message& message, const MacAddress& mac) { PutMac(message, vf, mac); });
  add("vlan", change.vlan, [&](Message& message, const VfVlan& vlan) { PutVlan(message, vf, vlan); });
  add("spoofchk", change.spoofchk, [&](Message& message, bool on) {
    message.PutStruct(IFLA_VF_SPOOFCHK, ifla_vf_spoofchk{vf, on ? 1U : 0U});
  });
  add("trust", change.trust, [&](Message& message, bool on) {
    message.PutStruct(IFLA_VF_TRUST, ifla_vf_trust{vf, on ? 1U : 0U});
  });
  add("link_state", change.link_state, [&](Message& message, VfLinkState state) {
    message.PutStruct(IFLA_VF_LINK_STATE, ifla_vf_link_state{vf, static_cast<std::uint32_t>(state)});
  });
  add("rate", change.rate, [&](Message& message, const VfRate& rate) {
    message.PutStruct(IFLA_VF_RATE, ifla_vf_rate{vf, rate.min, rate.max});
  });
  return steps;
}

}  // namespace railhead::nl

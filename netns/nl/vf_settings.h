// Settings of one VF, as its PF has them: one list for the kernel's messages, network configurations, the
// journal, restore and CHECK. A new one is a member, a line in ForEachVfSetting(), its netlink attribute in
// vf_messages.cc, and its key in cni/attachment/plugin_config_shape.h.
//
// Source of names and meanings: include/uapi/linux/if_link.h, net/core/rtnetlink.c.
// Threads: values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "netns/base/addresses.h"
#include "netns/json/record.h"

namespace railhead {

// IEEE 802.1Q and 802.1ad tags (include/uapi/linux/if_ether.h).
inline constexpr std::uint16_t kVlanProto8021q = 0x8100;
inline constexpr std::uint16_t kVlanProto8021ad = 0x88a8;

// IFLA_VF_LINK_STATE
enum class VfLinkState : std::uint8_t { kAuto = 0, kEnable = 1, kDisable = 2 };

template <>
struct Names<VfLinkState> {
  static constexpr std::array kAll = {std::pair{"auto", VfLinkState::kAuto},
                                      std::pair{"enable", VfLinkState::kEnable},
                                      std::pair{"disable", VfLinkState::kDisable}};
};

struct VfVlan {
  int id = 0;   // 0: none
  int qos = 0;  // 0..7
  std::uint16_t proto = kVlanProto8021q;
  bool operator==(const VfVlan&) const = default;
};

struct VfRate {  // Mbit/s; 0: no limit. One message sets both: min alone would reset max
  std::uint32_t min = 0;
  std::uint32_t max = 0;
  bool operator==(const VfRate&) const = default;
};

// nullopt: of a VF as it is, its driver does not report it; of one to be changed, leave it alone.
struct VfSettings {
  std::optional<MacAddress> mac;  // administrative; zero: none set
  std::optional<VfVlan> vlan;
  std::optional<bool> spoofchk;
  std::optional<bool> trust;
  std::optional<VfLinkState> link_state;
  std::optional<VfRate> rate;

  bool operator==(const VfSettings&) const = default;
  [[nodiscard]] bool Empty() const { return *this == VfSettings{}; }
};

// Zero: none is set.
inline MacAddress MacOf(const VfSettings& vf) {
  return vf.mac.value_or(MacAddress{});
}

// visit("spoofchk", &VfSettings::spoofchk), in the order in which they are set.
template <typename Visit>
void ForEachVfSetting(const Visit& visit) {
  visit("mac", &VfSettings::mac);
  visit("vlan", &VfSettings::vlan);
  visit("spoofchk", &VfSettings::spoofchk);
  visit("trust", &VfSettings::trust);
  visit("link_state", &VfSettings::link_state);
  visit("rate", &VfSettings::rate);
}

// "100, QoS 3, 802.1ad", "on", "0 to 200 Mbit/s": for messages.
std::string InWords(const MacAddress& mac);
std::string InWords(const VfVlan& vlan);
std::string InWords(bool on);
std::string InWords(VfLinkState state);
std::string InWords(const VfRate& rate);

// The settings that `change` has set and that differ in `now` from `before`.
VfSettings InverseOf(const VfSettings& change, const VfSettings& before, const VfSettings& now);

template <>
struct Shape<VfVlan> {
  static void List(auto& f) {
    f("id", &VfVlan::id);
    f("qos", &VfVlan::qos);
    f("proto", &VfVlan::proto);
  }
};

template <>
struct Shape<VfRate> {
  static void List(auto& f) {
    f("min", &VfRate::min);
    f("max", &VfRate::max);
  }
};

template <>
struct Shape<VfSettings> {
  static void List(auto& f) {
    ForEachVfSetting([&](const char* key, auto member) { f(key, member); });
  }
};

}  // namespace railhead

// Links as values. Source of names and meanings:
// include/uapi/linux/if_link.h, net/core/rtnetlink.c.
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/json/record.h"

namespace railhead {

// IFLA_INET6_ADDR_GEN_MODE
enum class AddrGenMode : std::uint8_t { kEui64 = 0, kNone = 1, kStablePrivacy = 2, kRandom = 3 };

struct Link {
  int index = 0;
  std::string name;
  std::string kind;  // "veth", "macvlan", ...; empty for hardware
  MacAddress mac;
  MacAddress permanent_mac;  // zero when the driver has none
  int mtu = 0;
  bool up = false;       // IFF_UP: administratively
  bool carrier = false;  // IFF_LOWER_UP
  std::string alias;
  std::string parent_device;                 // bus name of the parent, a BDF for PCI; empty without one
                                             // (IFLA_PARENT_DEV_NAME; before Linux 5.14 by the driver)
  int master = 0;                            // index of the bridge, bond or VRF above; 0: none
  std::optional<AddrGenMode> addr_gen_mode;  // nullopt: the link has no IPv6
  int tx_queue_len = 0;
  bool promiscuous = false;    // IFF_PROMISC: by an administrator
  bool all_multicast = false;  // IFF_ALLMULTI
  std::vector<std::string> alt_names;

  bool operator==(const Link&) const = default;
};

// IPV4_DEVCONF_* of include/uapi/linux/ip.h, as set by IFLA_INET_CONF.
enum class Ipv4Conf : std::uint8_t {
  kForwarding = 1,
  kRpFilter = 8,
  kArpFilter = 13,
  kArpAnnounce = 18,
  kArpIgnore = 19,
  kArpNotify = 22,
};

// Settings of an interface that a network configuration may ask for, and that the host gets back. nullopt:
// leave alone.
struct LinkSettings {
  std::optional<int> mtu;
  std::optional<std::string> alias;  // "": removes it
  std::optional<int> tx_queue_len;
  std::optional<bool> promiscuous;
  std::optional<bool> all_multicast;

  bool operator==(const LinkSettings&) const = default;
};

// visit("promisc", &LinkSettings::promiscuous, &Link::promiscuous)
template <typename Visit>
void ForEachLinkSetting(const Visit& visit) {
  visit("mtu", &LinkSettings::mtu, &Link::mtu);
  visit("alias", &LinkSettings::alias, &Link::alias);
  visit("txQLen", &LinkSettings::tx_queue_len, &Link::tx_queue_len);
  visit("promisc", &LinkSettings::promiscuous, &Link::promiscuous);
  visit("allmulti", &LinkSettings::all_multicast, &Link::all_multicast);
}

// All of them, as they are.
inline LinkSettings SettingsOf(const Link& link) {
  LinkSettings settings;
  ForEachLinkSetting([&](const char* /*key*/, auto setting, auto is) { settings.*setting = link.*is; });
  return settings;
}

template <>
struct Shape<LinkSettings> {
  static void List(auto& f) {
    ForEachLinkSetting([&](const char* key, auto setting, auto) { f(key, setting); });
  }
};

// Changes to one link; nullopt: leave alone.
struct LinkChange : LinkSettings {
  std::optional<std::string> name;
  std::optional<MacAddress> mac;
  std::optional<bool> up;
  std::optional<AddrGenMode> addr_gen_mode;
  std::vector<std::pair<Ipv4Conf, int>> ipv4;
};

}  // namespace railhead

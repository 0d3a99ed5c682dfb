// Links and VF settings as values. Source of names and meanings:
// include/uapi/linux/if_link.h, net/core/rtnetlink.c.
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/addresses.h"

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
  std::string parent_device;  // bus name of the parent, a BDF for PCI; empty when there is none
                              // (IFLA_PARENT_DEV_NAME, Linux 5.14)
  int master = 0;             // index of the bridge, bond or VRF above; 0: none
  std::optional<AddrGenMode> addr_gen_mode;  // nullopt: the link has no IPv6
  int tx_queue_len = 0;
  bool promiscuous = false;    // IFF_PROMISC: by an administrator
  bool all_multicast = false;  // IFF_ALLMULTI
  std::vector<std::string> alt_names;

  bool operator==(const Link&) const = default;
};

// IEEE 802.1Q and 802.1ad tags (include/uapi/linux/if_ether.h).
inline constexpr std::uint16_t kVlanProto8021q = 0x8100;
inline constexpr std::uint16_t kVlanProto8021ad = 0x88a8;

// IFLA_VF_LINK_STATE
enum class VfLinkState : std::uint8_t { kAuto = 0, kEnable = 1, kDisable = 2 };

// What the PF says of one VF. Fields that the driver does not report are nullopt.
struct VfState {
  int vf = 0;
  MacAddress mac;  // administrative MAC; zero: none set
  int vlan = 0;    // 0: none
  int qos = 0;     // 0..7
  std::uint16_t vlan_proto = 0x8100;
  std::optional<bool> spoofchk;
  std::optional<bool> trust;
  std::optional<VfLinkState> link_state;
  std::optional<std::uint32_t> min_tx_rate;  // Mbit/s; 0: no limit
  std::optional<std::uint32_t> max_tx_rate;

  bool operator==(const VfState&) const = default;
};

// Settings to change through the PF; nullopt: leave alone.
struct VfChange {
  std::optional<MacAddress> mac;
  struct Vlan {
    int id = 0;
    int qos = 0;
    std::uint16_t proto = 0x8100;
    bool operator==(const Vlan&) const = default;
  };
  std::optional<Vlan> vlan;
  std::optional<bool> spoofchk;
  std::optional<bool> trust;
  std::optional<VfLinkState> link_state;
  struct Rate {  // one message sets both: min alone would reset max
    std::uint32_t min = 0;
    std::uint32_t max = 0;
    bool operator==(const Rate&) const = default;
  };
  std::optional<Rate> rate;

  bool operator==(const VfChange&) const = default;
  [[nodiscard]] bool Empty() const { return !mac && !vlan && !spoofchk && !trust && !link_state && !rate; }
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

// Changes to one link; nullopt: leave alone.
struct LinkChange {
  std::optional<std::string> name;
  std::optional<MacAddress> mac;
  std::optional<int> mtu;
  std::optional<bool> up;
  std::optional<AddrGenMode> addr_gen_mode;
  std::optional<std::string> alias;  // "": removes it
  std::optional<int> tx_queue_len;
  std::optional<bool> promiscuous;
  std::optional<bool> all_multicast;
  std::vector<std::pair<Ipv4Conf, int>> ipv4;
};

}  // namespace railhead

// Addresses of links, routes, rules, neighbours as values. Source: include/uapi/linux/rtnetlink.h,
// include/uapi/linux/if_addr.h, fib_rules.h, neighbour.h.
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/addresses.h"

namespace railhead {

inline constexpr std::uint32_t kTableMain = 254;
inline constexpr std::uint32_t kTableLocal = 255;

enum class RouteScope : std::uint8_t { kUniverse = 0, kLink = 253, kHost = 254 };

struct Route {
  IpPrefix destination;  // network; length 0: default
  std::optional<IpAddress> gateway;
  std::optional<IpAddress> source;  // preferred source address
  int link = 0;                     // index of the outgoing link
  std::uint32_t table = kTableMain;
  std::uint32_t metric = 0;
  std::uint32_t mtu = 0;     // 0: the link's
  std::uint32_t advmss = 0;  // the MSS that TCP advertises; 0: as the MTU allows
  RouteScope scope = RouteScope::kUniverse;
  std::uint8_t protocol = 4;   // RTPROT_STATIC; 2: added by the kernel with an address
  std::vector<int> multipath;  // links of a multipath route, whose `link` is 0; only ever read

  bool operator==(const Route&) const = default;
  [[nodiscard]] std::string ToString() const;  // "10.0.0.0/8 via 10.100.0.254 dev 5 table 100"
};

struct LinkAddress {
  int link = 0;
  IpPrefix prefix;            // with host bits
  std::uint32_t flags = 0;    // IFA_F_*
  std::uint8_t protocol = 0;  // IFAPROT_*; 0: Linux before 5.18, or the one who set it, does not say

  bool operator==(const LinkAddress&) const = default;
};

struct Rule {
  int family = 0;  // AF_INET or AF_INET6
  std::uint32_t priority = 0;
  std::optional<IpPrefix> from;
  std::string oif;  // empty: any
  std::uint32_t table = 0;
  std::string iif = {};  // likewise

  bool operator==(const Rule&) const = default;
  [[nodiscard]] std::string ToString() const;  // "1000: from 10.100.0.10 lookup 100"
};

struct Neighbour {
  IpAddress address;
  MacAddress mac;  // zero while unresolved
  int link = 0;
  std::uint16_t state = 0;  // NUD_*

  bool operator==(const Neighbour&) const = default;
};

}  // namespace railhead

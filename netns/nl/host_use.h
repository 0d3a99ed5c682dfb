// HostUse: for what the host itself uses a link. ADD, kubelet's list, provisioning and `fabric suggest` ask
// here, so that one of them never offers what another refuses.
//
// The host uses a port of a bond, bridge or VRF, and a link that has one of these:
//   - The node's address (NodeAddress), however the link got it.
//   - An address that somebody set. The kernel does not say whether DHCP or a network manager did: both
//   count.
//   - A rule with its name, or a route that somebody set.
//   - A default route that is really used: of its family and table no other one has a lower metric.
// What the kernel makes on every link that is up is no use. Nor is what it makes from router advertisements:
// addresses, and routes of the protocol `ra`. Every host and pod on the network can send these. A node may
// have no other default route, and no link with the node's address may be known. Then the advertised default
// routes count: the node reaches Kubernetes by one of them.
//
// Source: net/ipv6/addrconf.c (addrconf_prefix_rcv_add_addr, ipv6_create_tempaddr), net/ipv6/route.c
// (rt6_add_dflt_router); include/uapi/linux/if_addr.h. systemd-networkd and NetworkManager add addresses with
// IFA_F_NOPREFIXROUTE.
// Threads: thread-safe as RouteApi is. Errors: the kernel's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/nl/link.h"
#include "netns/nl/route.h"

namespace railhead {

class RouteApi;

// The kernel configured it from a router advertisement.
bool IsAutoconfigured(const LinkAddress& address);

struct HostUse {
  enum class Kind : std::uint8_t { kPort, kAddress, kRule, kRoute };
  Kind kind = Kind::kAddress;
  // The node is reached by this link: it has the node's address, or a default route of the main table.
  bool is_vital = false;
  std::string text;  // "carries the host's address 192.0.2.10/24"

  bool operator==(const HostUse&) const = default;
};

// What the kernel says of the host's network. `addresses` may be those of the links in question only.
struct HostFacts {
  std::vector<LinkAddress> addresses;
  std::vector<Route> routes;  // of both families and all tables
  std::vector<Rule> rules;    // of both families
  std::optional<IpAddress> node_address;
  bool node_address_found = false;  // some link has it
};

// The decision. nullopt: the host does not use the link.
std::optional<HostUse> UseOf(const HostFacts& facts, const Link& link);

// Of one link. kNotFound: it is gone.
Result<std::optional<HostUse>> FindHostUse(RouteApi& host, const Link& link,
                                           const std::optional<IpAddress>& node_address);
// Of all of the host's links, by index.
Result<std::map<int, HostUse>> FindHostUses(RouteApi& host, const std::vector<Link>& links,
                                            const std::optional<IpAddress>& node_address);

}  // namespace railhead

#include "netns/nl/host_use.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "netns/base/text.h"
#include "netns/kernel.h"

namespace railhead {
namespace {

bool IsAdvertised(const Route& route) {
  return route.protocol == RTPROT_RA;
}

bool IsDefault(const Route& route) {
  return route.destination.length == 0;
}

bool LeavesBy(const Route& route, int link) {
  return route.link == link || Contains(route.multipath, link);
}

// Every IPv6 link has a link-local address. One of IPv4 was set by somebody.
bool IsOfHost(const LinkAddress& address) {
  const IpAddress& ip = address.prefix.address;
  if (ip.IsLoopback() || (ip.IsV6() && ip.IsLinkLocal())) return false;
  return !IsAutoconfigured(address);
}

std::optional<HostUse> UseByAddress(const HostFacts& facts, const Link& link) {
  std::optional<HostUse> use;
  for (const LinkAddress& address : facts.addresses) {
    if (address.link != link.index) continue;
    const std::string text = address.prefix.ToString();
    if (facts.node_address == address.prefix.address)
      return HostUse{HostUse::Kind::kAddress, true, "carries the node's address " + text};
    if (use || !IsOfHost(address)) continue;
    use = HostUse{HostUse::Kind::kAddress, false, "carries the host's address " + text};
    if ((address.flags & IFA_F_PERMANENT) == 0) use->text += " of DHCP or a network manager";
  }
  return use;
}

// Whether no other default route of the same family, table and origin has a lower metric.
bool IsBest(const HostFacts& facts, const Route& route) {
  return std::ranges::none_of(facts.routes, [&](const Route& other) {
    return IsDefault(other) && other.table == route.table &&
           other.destination.address.Family() == route.destination.address.Family() &&
           IsAdvertised(other) == IsAdvertised(route) && other.metric < route.metric;
  });
}

// Whether the node can only reach Kubernetes by a default route that a router advertises.
bool ReliesOnAdvertised(const HostFacts& facts) {
  return !facts.node_address_found && std::ranges::none_of(facts.routes, [](const Route& route) {
    return IsDefault(route) && !IsAdvertised(route);
  });
}

bool IsUsed(const HostFacts& facts, const Route& route) {
  if (route.protocol == RTPROT_KERNEL) return false;
  if (!IsDefault(route)) return !IsAdvertised(route);
  return IsBest(facts, route) && (!IsAdvertised(route) || ReliesOnAdvertised(facts));
}

// A default route of the main table before others.
std::optional<HostUse> UseByRoute(const HostFacts& facts, const Link& link) {
  std::optional<HostUse> use;
  for (const Route& route : facts.routes) {
    if (!LeavesBy(route, link.index) || !IsUsed(facts, route)) continue;
    const bool is_vital = IsDefault(route) && route.table == kTableMain;
    if (use && !is_vital) continue;
    use = HostUse{HostUse::Kind::kRoute, is_vital, "carries the host's "};
    use->text += IsDefault(route) ? "default route" : "route " + route.ToString();
    if (IsAdvertised(route)) use->text += ", which a router advertises";
    if (is_vital) break;
  }
  return use;
}

std::optional<HostUse> UseByRule(const HostFacts& facts, const Link& link) {
  for (const Rule& rule : facts.rules) {
    if (rule.iif == link.name || rule.oif == link.name)
      return HostUse{HostUse::Kind::kRule, false, "is in the host's rule " + rule.ToString()};
  }
  return std::nullopt;
}

bool HasNodeAddress(const HostFacts& facts) {
  return std::ranges::any_of(facts.addresses, [&](const LinkAddress& address) {
    return facts.node_address == address.prefix.address;
  });
}

Result<void> ReadRules(RouteApi& host, HostFacts* facts) {
  for (const int family : {AF_INET, AF_INET6}) {
    auto rules = RH_TRY_WRAP(host.ListRules(family), "reading the host's rules");
    std::ranges::move(rules, std::back_inserter(facts->rules));
  }
  return {};
}

Result<void> ReadRoutes(RouteApi& host, HostFacts* facts) {
  for (const int family : {AF_INET, AF_INET6}) {
    auto routes = RH_TRY_WRAP(host.ListRoutes(family, 0), "reading the host's routes");
    std::ranges::move(routes, std::back_inserter(facts->routes));
  }
  return {};
}

}  // namespace

bool IsAutoconfigured(const LinkAddress& address) {
  if (!address.prefix.address.IsV6()) return false;
  if (address.protocol != IFAPROT_UNSPEC) return address.protocol == IFAPROT_KERNEL_RA;
  // A privacy address, which only the kernel makes.
  if ((address.flags & IFA_F_TEMPORARY) != 0) return true;
  constexpr unsigned kOfKernel = IFA_F_MANAGETEMPADDR;
  constexpr unsigned kOfSomebody = IFA_F_PERMANENT | IFA_F_NOPREFIXROUTE;
  return (address.flags & (kOfKernel | kOfSomebody)) == kOfKernel;
}

std::optional<HostUse> UseOf(const HostFacts& facts, const Link& link) {
  std::optional<HostUse> use;
  if (link.master != 0) use = HostUse{HostUse::Kind::kPort, false, "belongs to a bond or bridge of the host"};
  for (const auto find : {UseByAddress, UseByRule, UseByRoute}) {
    auto other = find(facts, link);
    if (!other) continue;
    const bool is_vital = other->is_vital || (use && use->is_vital);
    if (!use) use = *std::move(other);
    use->is_vital = is_vital;
  }
  return use;
}

Result<std::optional<HostUse>> FindHostUse(RouteApi& host, const Link& link,
                                           const std::optional<IpAddress>& node_address) {
  HostFacts facts;
  facts.node_address = node_address;
  facts.addresses = RH_TRY(host.ListAddresses(link.index));
  RH_TRY(ReadRules(host, &facts));
  // The kernel drops the routes of a link that goes down. So for most VFs the host's routes need not be read.
  if (!link.up) return UseOf(facts, link);
  RH_TRY(ReadRoutes(host, &facts));
  const bool advertised = std::ranges::any_of(facts.routes, [&](const Route& route) {
    return IsDefault(route) && IsAdvertised(route) && LeavesBy(route, link.index);
  });
  if (node_address && advertised) facts.addresses = RH_TRY(host.ListAddresses(0));
  facts.node_address_found = HasNodeAddress(facts);
  return UseOf(facts, link);
}

Result<std::map<int, HostUse>> FindHostUses(RouteApi& host, const std::vector<Link>& links,
                                            const std::optional<IpAddress>& node_address) {
  HostFacts facts;
  facts.node_address = node_address;
  RH_TRY(ReadRoutes(host, &facts));
  RH_TRY(ReadRules(host, &facts));
  facts.addresses = RH_TRY_WRAP(host.ListAddresses(0), "reading the host's addresses");
  facts.node_address_found = HasNodeAddress(facts);
  std::map<int, HostUse> uses;
  for (const Link& link : links) {
    if (auto use = UseOf(facts, link)) uses.emplace(link.index, *std::move(use));
  }
  return uses;
}

}  // namespace railhead

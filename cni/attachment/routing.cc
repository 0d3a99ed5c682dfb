#include "cni/attachment/routing.h"

#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "netns/base/text.h"

namespace railhead::attachment {
namespace {

bool SameFamily(const IpAddress& a, const IpAddress& b) {
  return a.IsV6() == b.IsV6();
}

std::optional<IpAddress> GatewayFor(const Addressing& addressing, const IpPrefix& destination) {
  for (const auto& gateway : addressing.gateways) {
    if (gateway && SameFamily(*gateway, destination.address)) return gateway;
  }
  return std::nullopt;
}

// The configuration's gateway, otherwise the IPAM plugin's, otherwise the rail's.
std::optional<IpAddress> ChooseGateway(const PluginConfig& config, const DevicePlan& device,
                                       const CniIp& ip) {
  const IpAddress& address = ip.address.address;
  if (config.gateway && SameFamily(*config.gateway, address)) return config.gateway;
  if (ip.gateway) return ip.gateway;
  return device.rail ? device.rail->GatewayOf(ip.address.Network()) : std::nullopt;
}

std::optional<std::uint32_t> Number(const std::optional<int>& value) {
  return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

GatewayRoute IpamRoute(const Addressing& addressing, const CniRoute& ipam_route) {
  GatewayRoute route;
  route.destination = ipam_route.destination.Network();  // the kernel's form, which CHECK will find
  route.metric = Number(ipam_route.priority);
  route.table = Number(ipam_route.table);
  route.mtu = Number(ipam_route.mtu);
  route.advmss = Number(ipam_route.advmss);
  if (ipam_route.scope) route.scope = static_cast<RouteScope>(*ipam_route.scope);
  route.gateway = ipam_route.gateway;
  if (!route.gateway && route.scope != RouteScope::kLink)
    route.gateway = GatewayFor(addressing, route.destination);
  return route;
}

// Adds the routes to an Addressing, each once.
class RouteList {
 public:
  explicit RouteList(Addressing& addressing) : addressing_(addressing) {}

  void Add(const GatewayRoute& route) {
    if (!known_.emplace(route.destination, route.table, route.metric).second) return;
    if (!route.table) plain_.insert(route.destination);
    addressing_.routes.push_back(route);
  }
  // A route to a destination, unless there is one already.
  void AddPlain(const IpPrefix& prefix) {
    GatewayRoute route;
    route.destination = prefix.Network();
    route.gateway = GatewayFor(addressing_, route.destination);
    if (!plain_.contains(route.destination)) Add(route);
  }

 private:
  Addressing& addressing_;
  std::set<std::tuple<IpPrefix, std::optional<std::uint32_t>, std::optional<std::uint32_t>>> known_;
  std::set<IpPrefix> plain_;  // destinations of routes without a table of their own
};

// The kernel takes a router only where it is on the link already (net/ipv4/fib_semantics.c:
// fib_check_nh_v4_gw; net/ipv6/route.c: ip6_route_check_nh). An IPv6 link-local address is on every link.
class OnLink {
 public:
  explicit OnLink(const Addressing& addressing) {
    for (const auto& address : addressing.addresses) Add(address.Network());
    for (const auto& route : addressing.routes) {
      if (!route.gateway) Add(route.destination);
    }
  }

  [[nodiscard]] bool Has(const IpAddress& router) const {
    if (router.IsV6() && router.IsLinkLocal()) return true;
    return std::ranges::any_of(lengths_, [&](int length) {
      return prefixes_.contains(IpPrefix{router, length}.Network());
    });
  }

 private:
  void Add(const IpPrefix& prefix) {
    prefixes_.insert(prefix);
    lengths_.insert(prefix.length);
  }

  std::set<IpPrefix> prefixes_;
  std::set<int> lengths_;  // theirs, so that a look-up tries few
};

Result<void> CheckGateways(const Addressing& addressing) {
  const OnLink on_link(addressing);
  constexpr const char* kHint =
      "correct the gateway in the network configuration, fabric.json or the IPAM plugin; or give a route of "
      "scope link (253) to it";
  for (std::size_t i = 0; i < addressing.addresses.size(); ++i) {
    const auto& gateway = addressing.gateways[i];
    if (!gateway || on_link.Has(*gateway)) continue;
    return Fail(ErrorCode::kInvalid,
                "gateway " + gateway->ToString() + " is outside the subnet " +
                    addressing.addresses[i].Network().ToString(),
                kHint);
  }
  for (const auto& route : addressing.routes) {
    const std::string what = "route " + route.destination.ToString();
    if (!route.gateway && route.scope != RouteScope::kLink) {
      return Fail(ErrorCode::kInvalid, what + " has no gateway",
                  "give the rail or the network configuration a gateway of that address family");
    }
    if (!route.gateway || addressing.addresses.empty() || on_link.Has(*route.gateway)) continue;
    return Fail(ErrorCode::kInvalid,
                what + ": gateway " + route.gateway->ToString() + " is in no subnet of the interface", kHint);
  }
  return {};
}

}  // namespace

Result<Addressing> ResolveAddressing(const PluginConfig& config, const DevicePlan& device,
                                     const CniResult& ipam) {
  Addressing addressing;
  addressing.dns = ipam.dns;
  for (const auto& ip : ipam.ips) {
    addressing.addresses.push_back(ip.address);
    addressing.gateways.push_back(ChooseGateway(config, device, ip));
  }
  RouteList routes(addressing);
  if (config.routes) {
    for (const auto& destination : *config.routes) routes.AddPlain(destination);
  } else {
    for (const auto& route : ipam.routes) routes.Add(IpamRoute(addressing, route));
    if (device.rail && !addressing.addresses.empty()) {
      for (const auto& destination : device.rail->routes) routes.AddPlain(destination);
    }
  }
  RH_TRY(CheckGateways(addressing));
  // Whatever order the IPAM plugin answers in: first the routes that put routers on the link.
  std::stable_partition(addressing.routes.begin(), addressing.routes.end(),
                        [](const GatewayRoute& route) { return !route.gateway; });
  return addressing;
}

std::uint32_t PickTable(const std::vector<Rule>& rules_of_pod, std::uint32_t preferred) {
  std::uint32_t table = preferred == 0 ? kFirstRailTable : preferred;
  auto used = [&](std::uint32_t candidate) {
    return (candidate >= 253 && candidate <= 255) || Contains(rules_of_pod, candidate, &Rule::table);
  };
  while (used(table)) ++table;
  return table;
}

std::uint32_t MainMetric(std::uint32_t table) {
  const std::uint32_t metric = kFirstMainMetric + table;
  return metric < table ? table : metric;
}

std::vector<Route> RoutesFor(const Addressing& addressing, int link, std::uint32_t table) {
  std::vector<Route> routes;
  for (const auto& address : addressing.addresses) {
    Route connected;
    connected.destination = address.Network();
    connected.link = link;
    connected.table = table;
    connected.scope =
        address.address.IsV6() ? RouteScope::kUniverse : RouteScope::kLink;  // IPv6 has no scopes
    if (!address.address.IsV6()) connected.source = address.address;
    // Addresses of one subnet share the first one's route: the kernel refuses another with EEXIST.
    const bool there = Contains(routes, connected.destination, &Route::destination);
    if (!there) routes.push_back(connected);
  }
  for (const auto& requested : addressing.routes) {
    Route route;
    route.destination = requested.destination;
    route.gateway = requested.gateway;
    route.link = link;
    route.table = requested.table.value_or(table);
    route.mtu = requested.mtu.value_or(0);
    route.advmss = requested.advmss.value_or(0);
    route.scope = requested.scope.value_or(RouteScope::kUniverse);
    route.metric =
        requested.metric.value_or(requested.table ? 0 : (route.destination.address.IsV6() ? 1024 : 0));
    for (const auto& address : addressing.addresses) {
      if (!address.address.IsV6() && SameFamily(address.address, requested.destination.address)) {
        route.source = address.address;
        break;
      }
    }
    routes.push_back(route);
    if (requested.table) continue;
    route.table = kTableMain;
    route.metric = requested.metric.value_or(MainMetric(table));
    routes.push_back(route);
  }
  return routes;
}

std::vector<Rule> RulesFor(const AttachedDevice& device) {
  const std::uint32_t table = device.addressing.table;
  std::vector<Rule> rules;
  if (table == 0) return rules;
  bool v4 = false;
  bool v6 = false;
  for (const auto& address : device.addressing.addresses) {
    rules.push_back(
        {address.address.Family(), kRulePriorityFrom, IpPrefix::Host(address.address), "", table});
    (address.address.IsV6() ? v6 : v4) = true;
  }
  if (v4) rules.push_back({AF_INET, kRulePriorityOif, std::nullopt, device.pod_name, table});
  if (v6) rules.push_back({AF_INET6, kRulePriorityOif, std::nullopt, device.pod_name, table});
  return rules;
}

namespace {

// Each rail has its own table and metric, unless the IPAM plugin names one. The kernel accepts a destination
// only once for each table and metric, also over different interfaces.
Result<void> RefuseCollisions(const std::vector<AttachedDevice>& devices) {
  std::map<std::tuple<IpPrefix, std::uint32_t, std::uint32_t>, const AttachedDevice*> owners;
  for (const AttachedDevice& device : devices) {
    for (const Route& route : device.addressing.routes) {
      const auto key = std::tuple(route.destination, route.table, route.metric);
      const AttachedDevice& owner = *owners.try_emplace(key, &device).first->second;
      if (&owner == &device) continue;
      return Fail(ErrorCode::kInvalid,
                  "the IPAM plugin gives " + owner.pod_name + " and " + device.pod_name +
                      " the same route to " + route.destination.ToString() + " in table " +
                      std::to_string(route.table) + " with priority " + std::to_string(route.metric),
                  "remove priority and table from its routes: each device then gets its own");
    }
  }
  return {};
}

}  // namespace

Result<void> RecordAddressing(PodNetwork& network, const AttachPlan& plan,
                              const std::vector<Addressing>& addressing, JournalEntry& entry) {
  std::vector<Rule> rules = RH_TRY(network.pod->ListRules(AF_INET));
  for (auto& rule : RH_TRY(network.pod->ListRules(AF_INET6))) rules.push_back(std::move(rule));
  for (std::size_t i = 0; i < entry.devices.size(); ++i) {
    AttachedDevice& device = entry.devices[i];
    device.addressing.addresses = addressing[i].addresses;
    if (addressing[i].addresses.empty() || device.before.user_space) continue;
    device.addressing.table = PickTable(rules, plan.devices[i].table);
    device.addressing.routes = RoutesFor(addressing[i], 0, device.addressing.table);
    // The next device must not take the same table.
    for (auto& rule : RulesFor(device)) rules.push_back(std::move(rule));
  }
  return RefuseCollisions(entry.devices);
}

}  // namespace railhead::attachment

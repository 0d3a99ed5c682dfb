// FakeState: addresses and routes.
#include <algorithm>
#include <cerrno>

#include "tests/support/fake_kernel/fake_state.h"

namespace railhead::testing {

void FakeState::AddConnectedRoute(FakeNetdev& netdev, const IpPrefix& address) {
  if (!netdev.link.up || address.length == address.address.Bits()) return;
  Route route;
  route.destination = address.Network();
  route.link = netdev.link.index;
  route.scope = address.address.IsV4() ? RouteScope::kLink : RouteScope::kUniverse;
  route.protocol = 2;
  if (address.address.IsV4()) route.source = address.address;
  auto& routes = Namespace(netdev.ns)->routes;
  if (std::find(routes.begin(), routes.end(), route) == routes.end()) routes.push_back(route);
}

int FakeState::AddAddress(FakeNetdev& netdev, const IpPrefix& address) {
  const bool there = std::any_of(netdev.addresses.begin(), netdev.addresses.end(), [&](const IpPrefix& a) {
    return address.address.IsV6() ? a.address == address.address : a == address;
  });
  if (there) return EEXIST;
  if (address.address.IsV6() && !HasIpv6(netdev)) return EACCES;
  netdev.addresses.push_back(address);
  AddConnectedRoute(netdev, address);
  ForEachRdmaOn(netdev.id, [&](FakeRdma& rdma) { rdma.gids.Add(netdev.id, address.address, gid_delay); });
  return 0;
}

void FakeState::DropAddress(FakeNetdev& netdev, const IpPrefix& address) {
  std::erase(netdev.addresses, address);
  // Removes the connected route, and every route that prefers the address as source.
  std::erase_if(Namespace(netdev.ns)->routes, [&](const Route& route) {
    const bool connected =
        route.link == netdev.link.index && route.protocol == 2 && route.destination == address.Network();
    return connected || route.source == address.address;
  });
  ForEachRdmaOn(netdev.id, [&](FakeRdma& rdma) { rdma.gids.Remove(netdev.id, address.address); });
}

int FakeState::DeleteAddress(FakeNetdev& netdev, const IpPrefix& address) {
  const auto& all = netdev.addresses;
  if (std::find(all.begin(), all.end(), address) == all.end()) return EADDRNOTAVAIL;
  DropAddress(netdev, address);
  return 0;
}

int FakeState::AddRoute(const std::string& ns, Route route) {
  FakeNamespace& space = *Namespace(ns);
  const FakeNetdev* netdev = Find(ns, route.link);
  if (netdev == nullptr) return ENODEV;
  if (!netdev->link.up) return ENETDOWN;
  if (route.destination.address.IsV6() && !HasIpv6(*netdev)) return EACCES;
  if (route.destination.address.IsV6() && route.metric == 0) route.metric = 1024;
  if (route.destination.Network() != route.destination) return EINVAL;
  if (route.gateway && !(route.gateway->IsV6() && route.gateway->IsLinkLocal())) {
    const bool reachable = std::any_of(space.routes.begin(), space.routes.end(), [&](const Route& other) {
      return other.link == route.link && !other.gateway && other.destination.Contains(*route.gateway) &&
             (other.table == kTableMain || other.table == route.table);
    });
    if (!reachable) return ENETUNREACH;
  }
  if (route.source) {
    const bool local = std::any_of(netdevs.begin(), netdevs.end(), [&](const FakeNetdev& other) {
      return other.ns == ns && std::any_of(other.addresses.begin(), other.addresses.end(),
                                           [&](const IpPrefix& a) { return a.address == *route.source; });
    });
    if (!local) return EINVAL;
  }
  const bool there = std::any_of(space.routes.begin(), space.routes.end(), [&](const Route& other) {
    return other.destination == route.destination && other.table == route.table &&
           other.metric == route.metric;
  });
  if (there) return EEXIST;
  space.routes.push_back(std::move(route));
  return 0;
}

// A field that the request omits matches anything (fib_table_delete).
int FakeState::DeleteRoute(const std::string& ns, const Route& route) {
  auto& routes = Namespace(ns)->routes;
  const auto found = std::find_if(routes.begin(), routes.end(), [&](const Route& other) {
    return other.destination == route.destination && other.table == route.table &&
           (route.link == 0 || other.link == route.link) &&
           (!route.gateway || other.gateway == route.gateway) &&
           (route.metric == 0 || other.metric == route.metric);
  });
  if (found == routes.end()) return ESRCH;
  routes.erase(found);
  return 0;
}

}  // namespace railhead::testing

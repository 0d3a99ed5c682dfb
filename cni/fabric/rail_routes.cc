#include "cni/fabric/rail_routes.h"

#include <algorithm>

#include "cni/fabric/fabric.h"

namespace railhead {
namespace {

// The prefix that has both halves; nullopt: they are not the halves of one.
std::optional<IpPrefix> Joined(const IpPrefix& low, const IpPrefix& high) {
  if (low.length != high.length || low.length == 0) return std::nullopt;
  const IpPrefix whole = IpPrefix{low.address, low.length - 1}.Network();
  return whole.Contains(high) ? std::optional(whole) : std::nullopt;
}

bool IsOnLink(const Rail& rail, const IpPrefix& destination) {
  return rail.subnet && rail.node_subnet.value_or(rail.subnet->length) == rail.subnet->length &&
         rail.subnet->Contains(destination);
}

}  // namespace

std::vector<IpPrefix> FewestPrefixes(std::vector<IpPrefix> prefixes) {
  std::ranges::sort(prefixes);
  std::vector<IpPrefix> fewest;
  for (const IpPrefix& prefix : prefixes) {
    if (!fewest.empty() && fewest.back().Contains(prefix)) continue;
    fewest.push_back(prefix);
    while (fewest.size() > 1) {
      const auto joined = Joined(*(fewest.end() - 2), fewest.back());
      if (!joined) break;
      fewest.pop_back();
      fewest.back() = *joined;
    }
  }
  return fewest;
}

std::vector<IpPrefix> SubnetsOf(const Rail& rail) {
  if (!rail.fabric_subnets.empty() || !rail.subnet) return rail.fabric_subnets;
  return {*rail.subnet};
}

std::vector<IpPrefix> FollowingRoutes(const Fabric& fabric, const Rail& rail) {
  if (!rail.gateway || !rail.subnet) return {};
  std::vector<IpPrefix> destinations;
  for (const Rail& other : fabric.rails) {
    if (rail.routes_from != RouteSource::kRails && &other != &rail) continue;
    for (const IpPrefix& subnet : SubnetsOf(other)) {
      if (subnet.address.IsV6() == rail.subnet->address.IsV6()) destinations.push_back(subnet.Network());
    }
  }
  destinations = FewestPrefixes(std::move(destinations));
  std::erase_if(destinations, [&](const IpPrefix& one) { return IsOnLink(rail, one); });
  return destinations;
}

}  // namespace railhead

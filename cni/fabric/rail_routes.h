// The routes of a rail's pods that follow from the subnets of the fabric: by default to the rail's subnets on
// all nodes, or to those of all rails ("routes": "rails"). Threads: pure functions.
#pragma once

#include <vector>

#include "netns/base/addresses.h"

namespace railhead {

struct Fabric;
struct Rail;

// The fewest prefixes that have the same addresses, sorted.
std::vector<IpPrefix> FewestPrefixes(std::vector<IpPrefix> prefixes);

// This rail's subnets on all nodes.
std::vector<IpPrefix> SubnetsOf(const Rail& rail);

// The destinations behind the rail's gateway, unless they are written. Without a gateway there are none. What
// is on the link of each pod anyway is left out.
std::vector<IpPrefix> FollowingRoutes(const Fabric& fabric, const Rail& rail);

}  // namespace railhead

// The MAC address of a node's probe endpoint on a rail (deviceplugin/services/reachability/probe_endpoint.h).
// It follows from the names of node and rail. So it stays the same over restarts, and every node can compute
// the MACs of all others. Threads: pure.
#pragma once

#include <string>

#include "netns/base/addresses.h"

namespace railhead {

// Locally administered.
MacAddress ProbeEndpointMac(const std::string& node, const std::string& rail);

}  // namespace railhead

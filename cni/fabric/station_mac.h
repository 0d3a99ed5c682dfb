// The MAC address of a node's station on a rail (deviceplugin/services/reachability/probe_endpoint.h): where
// the rail has no VLAN the station is a macvlan, and its MAC follows from the names of node and rail. So it
// is the same one after every start, no switch and no peer has to learn it anew, and every node can compute
// those of the others. Threads: pure.
#pragma once

#include <string>

#include "netns/base/mac_address.h"

namespace railhead {

// Locally administered.
MacAddress StationMac(const std::string& node, const std::string& rail);

}  // namespace railhead

// VFs, pools and blocks of addresses: how much of each rail a node gives to pods.
//
// Ownership: borrows all for the call. Threads: pure functions.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/tools/fabric_suggest/findings.h"
#include "deviceplugin/tools/fabric_suggest/rails.h"

namespace railhead::fabric_suggest {

struct Draft {
  Fabric fabric;
  std::optional<int> vfs;          // provision.vfs
  std::map<std::string, int> own;  // provision.rails.RAIL.vfs
  // So many rails, the pools, the nodes' numbers and the VFs are those of a present fabric, and stay.
  std::size_t kept = 0;
};

// The draft has the rails, with their subnets.
void SetCapacity(const std::vector<AlignedRail>& aligned, const Nodes& nodes, Draft* draft,
                 Findings* findings);

}  // namespace railhead::fabric_suggest

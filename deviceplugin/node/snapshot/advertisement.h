// Advertisement: the complete state that kubelet gets: the resources with their devices, and the unhealthy
// ones. Lost devices are in no pool, so that Allocate refuses them, but in kubelet's list, unhealthy. It is
// replaced, never changed.
// Threads: value over immutable parts.
// Ownership: shares the pools.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"

namespace railhead {

struct Advertisement {
  std::vector<std::shared_ptr<const resources::ResourcePool>> pools;
  std::shared_ptr<const std::set<std::string>> unhealthy;  // device ids; nullptr: none
  std::map<std::string, std::set<std::string>> lost;       // by resource; FindAllocatedAndLost()
};

}  // namespace railhead

// Offer: what kubelet is told, as a whole: the resources with their devices, and which of
// these are unhealthy. Replaced, never changed.
// Threads: value over immutable parts.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"

namespace railhead {

struct Offer {
  std::vector<std::shared_ptr<const ResourcePool>> pools;
  std::shared_ptr<const std::set<std::string>> unhealthy;  // device ids; nullptr: none
};

}  // namespace railhead

// BindingView: what this node can bind to pods, as of the last discovery. It follows from the node and its
// health. Threads: a value.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/node/topology/accelerator_ids.h"
#include "deviceplugin/node/topology/topology.h"

namespace railhead {

struct BindingView {
  std::vector<std::shared_ptr<const resources::ResourcePool>> pools;  // of devices, not of slots
  std::set<std::string> unhealthy;
  std::shared_ptr<const topology::Topology> topology;            // nullptr: unknown
  std::shared_ptr<const topology::AcceleratorIds> accelerators;  // of the topology
};

}  // namespace railhead

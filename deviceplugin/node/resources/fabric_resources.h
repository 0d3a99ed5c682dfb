// Resources from fabric.json: rails become the PFs that this node has for them.
//
// Threads: pure functions. Errors: kInvalid with the JSON pointer for a request of the fabric that railheadd
// cannot fulfil.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/result.h"

namespace railhead::resources {

struct FabricResources {
  std::vector<ResourceSpec> specs;
  // Rails of some pool for which this node has no PF: worth a warning.
  std::vector<std::string> absent_rails;
};

// Rail name -> address of this node's PF on it; of several alternatives the first. Omits rails that the node
// lacks.
std::map<std::string, std::string> PfsOfRails(const Fabric& fabric, const inventory::Inventory& inventory);

Result<FabricResources> ResourcesOfFabric(const Fabric& fabric, const inventory::Inventory& inventory);

}  // namespace railhead::resources

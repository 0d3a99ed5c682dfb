// Resources out of fabric.json: rails become the PFs that this node has for them.
//
// Threads: pure functions. Errors: kInvalid with the JSON pointer for what the fabric
// asks and railheadd cannot do.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/resource_pool.h"

namespace railhead {

struct FabricResources {
  std::vector<ResourceSpec> specs;
  // Rails of some pool for which this node has no PF: worth a warning.
  std::vector<std::string> absent_rails;
};

// Rail name -> address of this node's PF on it: of several alternatives the first. Rails that the node
// lacks are not there.
std::map<std::string, std::string> PfsOfRails(const Fabric& fabric, const Inventory& inventory);

Result<FabricResources> ResourcesOfFabric(const Fabric& fabric, const Inventory& inventory);

}  // namespace railhead

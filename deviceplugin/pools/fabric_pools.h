// Resources out of fabric.json: rails become the PFs that this node has for them.
//
// Threads: pure function. Errors: kInvalid with the JSON pointer for what the fabric
// asks and railheadd cannot do.
#pragma once

#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/pools/inventory.h"
#include "deviceplugin/pools/resource_pool.h"

namespace railhead {

struct FabricResources {
  std::vector<ResourceSpec> specs;
  // Rails of some pool for which this node has no PF: worth a warning.
  std::vector<std::string> absent_rails;
};

Result<FabricResources> ResourcesOfFabric(const Fabric& fabric, const Inventory& inventory);

}  // namespace railhead

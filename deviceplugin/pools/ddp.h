// DDP profiles: the packages that Intel's NICs run (dynamic device personalization).
//
// The driver tells the name by devlink (ice: "fw.app.name"; i40e tells none, and its tool is no
// part of a node). A VF runs what its PF runs.
// Threads: thread-safe. Errors: none; a NIC that does not say has no profile.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/pools/inventory.h"
#include "deviceplugin/pools/resource_pool.h"
#include "netns/base/root.h"

namespace railhead {

// The profile of a PF by its address; "" when it has none.
using DdpLookup = std::function<std::string(const std::string& pf)>;

// Of the kernel; of nothing below another root.
DdpLookup DdpOfKernel(const Root& root);

// `inventory` with the profiles of its network functions, if any of `specs` selects by them:
// asking drivers takes long.
std::shared_ptr<const Inventory> WithDdpProfiles(std::shared_ptr<const Inventory> inventory,
                                                 const std::vector<ResourceSpec>& specs,
                                                 const DdpLookup& lookup);

}  // namespace railhead

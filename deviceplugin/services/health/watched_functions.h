// The NICs that health watches: the PFs of the rails and of the advertised devices, with their VFs, and no
// other NICs of the host. Threads: pure function.
#pragma once

#include <vector>

#include "deviceplugin/node/health/device_health.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"

namespace railhead::health {

// `known`: the devices that health has. A device that has gone or lost its driver is in no pool. It is still
// watched, so that health reports it.
std::vector<inventory::NicFunction> WatchedFunctions(const NodeSnapshot& node,
                                                     const std::vector<DeviceHealth>& known);

}  // namespace railhead::health

// Which NICs health watches: the PFs of the rails and of what may be given out, with their VFs, and no more
// of the host's. Threads: pure function.
#pragma once

#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/health/observation.h"

namespace railhead {

// `known`: what health knows by now. What of that has gone, or has lost its driver, is in no pool any more,
// and watched because somebody has to say so.
std::vector<NicFunction> WatchedFunctions(const Plan& plan, const std::vector<DeviceHealth>& known);

}  // namespace railhead

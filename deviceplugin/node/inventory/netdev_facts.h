// The parts of a NicFunction that come from its network and RDMA devices: the same for PCI functions and for
// auxiliary devices. For inventory.cc and subfunctions.cc.
//
// Threads: thread-safe. Errors: kIo, and kConflict for values that the kernel never writes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::inventory {

// Network devices that the host's own network uses, each with NicFunction::host_use. The device that shows it
// is itself, or one stacked on it.
using HostCarriers = std::map<std::string, std::string>;
Result<HostCarriers> FindHostCarriers(const Root& root, const HostNetwork& host);

// Sets link_type and host_use from the function's network devices.
Result<void> ReadNetdevFacts(const Root& root, const HostCarriers& host,
                             const std::vector<std::string>& netdevs, NicFunction* function);

// Sets rdma_device, is_rdma and pkey from its RDMA devices, and link_type if it is not known yet.
Result<void> ReadRdmaFacts(const Root& root, const std::vector<std::string>& rdma_devices,
                           NicFunction* function);

}  // namespace railhead::inventory

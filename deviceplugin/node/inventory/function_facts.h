// The parts of a NicFunction that come from its network and RDMA devices: the same for
// PCI functions and for auxiliary devices. For inventory.cc and subfunctions.cc.
//
// Threads: thread-safe. Errors: kIo, and kConflict for what the kernel never writes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// Network devices that the host's own network stands on, each with the one that says so: itself,
// or what is stacked on it.
using HostCarriers = std::map<std::string, std::string>;
Result<HostCarriers> FindHostCarriers(const Root& root, const HostNetwork& host);

// link_type, used_by_host and used_by_host_through, of the function's network devices.
Result<void> ReadNetdevFacts(const Root& root, const HostCarriers& host,
                             const std::vector<std::string>& netdevs, NicFunction* function);

// rdma_device, is_rdma and pkey, of its RDMA devices, and link_type where it is not
// known yet.
Result<void> ReadRdmaFacts(const Root& root, const std::vector<std::string>& rdma_devices,
                           NicFunction* function);

}  // namespace railhead

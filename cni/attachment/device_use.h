// Who still uses a device that is at home: what processes of an earlier pod can keep.
//
// Threads: as Kernel. Errors: kBusy names the device, and the process or interface that uses it; kPermission:
// /proc does not show to us what some process has open.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/sys/pci.h"

namespace railhead {

// That nobody has a node open which leads to the device: its VFIO group, its UIO or uverbs device.
Result<void> RequireNodesClosed(const Root& root, const std::string& device);

// That no process has resources of these RDMA devices of it.
Result<void> RequireRdmaUnused(const Root& root, Kernel& kernel, const std::string& device,
                               const std::vector<std::string>& rdma_devices);

// Both, and that nothing is stacked on it in another namespace: those of processes, of attachments, and those
// with a name. A namespace that only a descriptor keeps is not found. `on_host`: nullopt, it has no
// interface.
Result<void> RequireUnused(const Root& root, Kernel& kernel, const Journal& journal, const PciDevice& device,
                           const std::optional<Link>& on_host);

}  // namespace railhead

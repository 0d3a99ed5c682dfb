// What still uses a device on the host: processes and interfaces that an earlier pod left.
//
// Threads: as Kernel. Errors: kBusy names the device, and the process or interface that uses it. kPermission:
// /proc does not show the open files of some process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"
#include "netns/sys/pci.h"

namespace railhead::attachment {

// kBusy when a process has a device node of the device open: its VFIO group, its UIO or uverbs device.
Result<void> RequireNodesClosed(const Root& root, const std::string& device);

// kBusy when a process has resources of these RDMA devices of the device.
Result<void> RequireRdmaUnused(const Root& root, Kernel& kernel, const std::string& device,
                               const std::vector<std::string>& rdma_devices);

// Both, and kBusy when another namespace has an interface on top of the device. Checks the namespaces of
// processes, of attachments, and those with a name, but not one that only a descriptor keeps alive.
// `on_host`: nullopt if the device has no interface.
Result<void> RequireUnused(const Root& root, Kernel& kernel, const Journal& journal, const PciDevice& device,
                           const std::optional<Link>& on_host);

}  // namespace railhead::attachment

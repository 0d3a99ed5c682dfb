// Binds a device's driver anew. The driver then reads the VF's MAC, and starts with its default settings.
// Threads: as Kernel. Errors: kTimeout when the interface does not come back.
#pragma once

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"
#include "netns/sys/pci_address.h"

namespace railhead {

// Returns the device's new interface on the host.
Result<Link> RebindAndAwait(const Root& root, Kernel& kernel, RouteApi& host, const PciAddress& device);

}  // namespace railhead

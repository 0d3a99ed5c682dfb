// Binds a device's driver again. The driver then reads the VF's MAC, and starts with its default settings.
// This removes interfaces on top of the device in every namespace, XDP and tc programs, and RDMA contexts
// (hardware drivers disassociate them, ib_uverbs_remove_one). Threads: as Kernel. Errors: kTimeout when the
// interface does not come back.
#pragma once

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"
#include "netns/sys/pci_address.h"

namespace railhead::attachment {

// Returns the device's new interface on the host.
Result<Link> RebindAndAwait(const Root& root, Kernel& kernel, RouteApi& host, const PciAddress& device);

// The same, and the interface has its former MAC afterwards with drivers that take it from the PF
// (netns/sys/mac_at_bind.h).
Result<Link> RebindKeepingMac(const Root& root, Kernel& kernel, RouteApi& host, const AttachedDevice& device);

}  // namespace railhead::attachment

// The GPUs that NCCL or RCCL may use: those whose driver is NVIDIA's or AMD's.
//
// Where neither driver is loaded, display controllers and processing accelerators (PCI base
// classes 03 and 12) of these vendors, which means a look at every function of the node. That
// graphics of other vendors (management chips, Intel's) are none is the same as in
// deviceplugin/node/topology; GPUs of other vendors NCCL does not know.
// Threads: thread-safe; reads /sys below `root` at the call.
#pragma once

#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/sys/pci_address.h"

namespace railhead {

// In PCI order.
Result<std::vector<PciAddress>> ScanAccelerators(const Root& root);

}  // namespace railhead

// Compares the NCCL configuration with the NICs' RDMA devices, the CDI specs and the files.
// Threads: as Kernel; reads only. An error means that the state could not be read.
#pragma once

#include "cni/attachment/differences.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// RDMA device, port, GID index and uverbs node.
Result<void> CheckRdma(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                       const AttachedDevice& device);

// Checks that containers that start later get the same configuration, and that stacks that search for a GID
// still find the pod's.
Result<void> CheckNcclConfig(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                             const JournalEntry& entry);

}  // namespace railhead::attachment

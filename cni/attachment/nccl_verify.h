// What of the handoff is not as the pod was told: the NICs' RDMA side, the CDI specs, and the files.
// Threads: as Kernel; reads only. An error means that it could not be found out.
#pragma once

#include "cni/attachment/verify_list.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

// RDMA device, port, GID index and uverbs node.
Result<void> CheckRdma(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                       const AttachedLink& link);

// That containers which start later get the same as those before, and that stacks which look for a GID
// themselves still end at the pod's.
Result<void> CheckHandoff(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                          const JournalEntry& entry);

}  // namespace railhead

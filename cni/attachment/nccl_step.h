// The NCCL configuration of a sandbox, built from all its finished attachments.
// Threads: as Kernel; takes the sandbox's lock itself.
#pragma once

#include <chrono>
#include <string>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Attachments of one sandbox can run at the same time. A call that writes or removes the sandbox's NCCL
// configuration holds this lock. kTimeout after `limit`.
Result<FileLock> LockSandbox(const Root& root, const std::string& container, std::chrono::milliseconds limit);

// Writes the CDI specs and nccl.conf, with this attachment and the sandbox's earlier ones. Then marks the
// entry as done. In this order, so that a finished entry always has its NCCL configuration.
Result<void> FinishWithNcclConfig(const Root& root, const Journal& journal, Kernel& kernel,
                                  PodNetwork& network, const AttachPlan& plan, JournalEntry& entry);

// Removes the CDI specs of the entry's devices and, with the last attachment of the sandbox, its NCCL
// configuration. Call it before the entry is removed: DEL is repeated while there is an entry.
Result<void> RemoveNcclConfigOf(const Root& root, const Journal& journal, const JournalEntry& entry);

}  // namespace railhead::attachment

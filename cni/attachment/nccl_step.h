// The handoff of a sandbox, built from all its finished attachments.
// Threads: as Kernel; takes the sandbox's lock itself.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/nccl/nccl_config.h"
#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/state_folder.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Attachments of one sandbox may be made at the same time; who writes or removes its
// handoff holds this. kTimeout after `limit`.
Result<FileLock> LockSandbox(const Root& root, const std::string& container, std::chrono::milliseconds limit);

// Whether the device is to be in nccl.conf. kUnsupported when it has to be, and has no RDMA device.
Result<void> PlanNcclConfig(const Root& root, HandoffWish wish, DevicePlan& plan);

// Writes the device's CDI spec and nccl.conf with this and the sandbox's earlier
// attachments, then marks the entry as done: in this order, so that an
// entry that is done has its handoff.
Result<void> FinishWithHandoff(const Root& root, const Journal& journal, Kernel& kernel, PodNetwork& network,
                               const AttachPlan& plan, JournalEntry& entry);

// Removes the CDI specs of the entry's devices and, with the last attachment of
// the sandbox, its handoff. Call before the entry is removed: while there is one,
// DEL comes again.
Result<void> RemoveHandoffOf(const Root& root, const Journal& journal, const JournalEntry& entry);

// What the pod of a sandbox is told about its NICs: the files and variables of its containers.
// Threads: as Kernel; reads only.

struct HandoffContent {
  std::vector<nccl::HandoffFile> files;  // nccl.conf first
  std::vector<std::string> env;          // "NAME=value"
};

// `devices`: all of the sandbox's. Empty when none is for NCCL, or has a GID: then the image keeps its
// files.
Result<HandoffContent> HandoffContentOf(const Root& root, Kernel& kernel, PodNetwork& network,
                                        const AttachPlan& plan, std::vector<AttachedDevice> devices);

}  // namespace railhead::attachment

// What the pod of a sandbox is told about its NICs: the files and variables of its containers.
// Threads: as Kernel; reads only.
#pragma once

#include <string>
#include <vector>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/nccl/nccl_files.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

struct HandoffContent {
  std::vector<HandoffFile> files;  // nccl.conf first
  std::vector<std::string> env;    // "NAME=value"
};

// `links`: all of the sandbox's. Empty when none is for NCCL, or has a GID: then the image keeps its
// files.
Result<HandoffContent> HandoffContentOf(const Root& root, Kernel& kernel, PodNetwork& network,
                                        const AttachPlan& plan, std::vector<AttachedLink> links);

}  // namespace railhead

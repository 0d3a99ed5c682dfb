// What the pod of a sandbox is told about its NICs: the contents of its handoff files.
// Threads: as Kernel; reads only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/plugin/plan.h"
#include "cni/plugin/pod_network.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

struct HandoffContent {
  std::string nccl_conf;
  std::optional<std::string> topology;  // nullopt: NCCL sees by itself where the NICs are
};

// `links`: all of the sandbox's that are for NCCL; at least one has a GID.
Result<HandoffContent> HandoffContentOf(const Root& root, Kernel& kernel, PodNetwork& network,
                                        const AttachPlan& plan, const std::vector<AttachedLink>& links);

}  // namespace railhead

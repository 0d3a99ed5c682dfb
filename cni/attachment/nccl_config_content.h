// The NCCL configuration of a sandbox: files and variables of its containers.
// Threads: as Kernel; reads only.
#pragma once

#include <string>
#include <vector>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/nccl/nccl_config_files.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

struct NcclConfigContent {
  std::vector<nccl::NcclConfigFile> files;  // nccl.conf first
  std::vector<std::string> env;             // "NAME=value"
};

// `devices`: all of the sandbox's. Empty when no device is for NCCL and has a GID: then the image keeps its
// own files.
Result<NcclConfigContent> BuildNcclConfig(const Root& root, Kernel& kernel, PodNetwork& network,
                                          const AttachPlan& plan, std::vector<AttachedDevice> devices);

}  // namespace railhead::attachment

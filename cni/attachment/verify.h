// What of an attachment is not as ADD promised it: link, namespace, MAC, MTU, tuning,
// VF settings, addresses, routes, rules, sysctls, RDMA device, GID, CDI spec, handoff.
// Threads: as Kernel; reads only.
#pragma once

#include <string>
#include <vector>

#include "cni/attachment/pod_network.h"
#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// What CHECK and railheadd find not to be as ADD promised it, in words.
// Threads: values.

using Differences = std::vector<std::string>;

inline void CheckValue(Differences& differences, const std::string& what, const std::string& is,
                       const std::string& should) {
  if (is != should) differences.push_back(what + " is " + is + ", should be " + should);
}

// Each difference in words; empty when all is as promised. An error means that it
// could not be found out.
Result<Differences> FindDifferences(const Root& root, Kernel& kernel, PodNetwork& network,
                                    const JournalEntry& entry);

// Of these what a running process that uses the handoff would notice: interface, addresses, RDMA
// device, port, GID index, uverbs node, CDI spec, nccl.conf.
Result<Differences> FindHandoffDrift(const Root& root, Kernel& kernel, PodNetwork& network,
                                     const JournalEntry& entry);

// What of the handoff is not as the pod was told: the NICs' RDMA side, the CDI specs, and the files.
// Threads: as Kernel; reads only. An error means that it could not be found out.

// RDMA device, port, GID index and uverbs node.
Result<void> CheckRdma(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                       const AttachedDevice& device);

// That containers which start later get the same as those before, and that stacks which look for a GID
// themselves still end at the pod's.
Result<void> CheckHandoff(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                          const JournalEntry& entry);

}  // namespace railhead::attachment

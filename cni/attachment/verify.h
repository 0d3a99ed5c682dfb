// Compares an attachment with what ADD set: link, namespace, MAC, MTU, tuning, VF settings, addresses,
// routes, rules, sysctls, RDMA device, GID, CDI spec, NCCL configuration. Threads: as Kernel; reads only.
#pragma once

#include <string>
#include <vector>

#include "cni/attachment/pod_network.h"
#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Differences that CHECK and railheadd report, one sentence each.
// Threads: values.

using Differences = std::vector<std::string>;

inline void CheckValue(Differences& differences, const std::string& what, const std::string& is,
                       const std::string& should) {
  if (is != should) differences.push_back(what + " is " + is + ", should be " + should);
}

// Empty when all is as ADD set it. An error means that the state could not be read.
Result<Differences> FindDifferences(const Root& root, Kernel& kernel, PodNetwork& network,
                                    const JournalEntry& entry);

// Only the differences that affect a running process with the NCCL configuration: interface, addresses, RDMA
// device, port, GID index, uverbs node, CDI spec, nccl.conf.
Result<Differences> FindNcclConfigDrift(const Root& root, Kernel& kernel, PodNetwork& network,
                                        const JournalEntry& entry);

// Compares the NCCL configuration with the NICs' RDMA devices, the CDI specs and the files.
// Threads: as Kernel; reads only. An error means that the state could not be read.

// RDMA device, port, GID index and uverbs node.
Result<void> CheckRdma(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                       const AttachedDevice& device);

// Checks that containers that start later get the same configuration, and that stacks that search for a GID
// still find the pod's.
Result<void> CheckNcclConfig(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                             const JournalEntry& entry);

}  // namespace railhead::attachment

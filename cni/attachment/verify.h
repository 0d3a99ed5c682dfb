// Compares an attachment with what ADD set: link, namespace, MAC, MTU, tuning, VF settings, addresses,
// routes, rules, sysctls, RDMA device, GID, CDI spec, NCCL configuration. Threads: as Kernel; reads only.
#pragma once

#include "cni/attachment/differences.h"
#include "cni/attachment/pod_network.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Empty when all is as ADD set it. An error means that the state could not be read.
Result<Differences> FindDifferences(const Root& root, Kernel& kernel, PodNetwork& network,
                                    const JournalEntry& entry);

// Only the differences that affect a running process with the NCCL configuration: interface, addresses, RDMA
// device, port, GID index, uverbs node, CDI spec, nccl.conf.
Result<Differences> FindNcclConfigDrift(const Root& root, Kernel& kernel, PodNetwork& network,
                                        const JournalEntry& entry);

}  // namespace railhead::attachment

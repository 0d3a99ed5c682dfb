// What of an attachment is not as ADD promised it: link, namespace, MAC, MTU, tuning,
// VF settings, addresses, routes, rules, sysctls, RDMA device, GID, CDI spec, handoff.
// Threads: as Kernel; reads only.
#pragma once

#include "cni/attachment/pod_network.h"
#include "cni/attachment/verify_list.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

// Each difference in words; empty when all is as promised. An error means that it
// could not be found out.
Result<Differences> FindDifferences(const Root& root, Kernel& kernel, PodNetwork& network,
                                    const JournalEntry& entry);

// Of these what a running process that uses the handoff would notice: interface, addresses, RDMA
// device, port, GID index, uverbs node, CDI spec, nccl.conf.
Result<Differences> FindHandoffDrift(const Root& root, Kernel& kernel, PodNetwork& network,
                                     const JournalEntry& entry);

}  // namespace railhead

// The journal entry of an ADD: what will be changed and what it was before.
// Threads: as Kernel. Nothing is touched.
#pragma once

#include <vector>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/routing.h"
#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::attachment {

// A device as it is on the host. Its function, link and VF are known.
Result<void> DescribeOnHost(const Root& root, DevicePlan& plan);

// Reads the drivers' settings of the devices that will be moved. One reading serves all attempts of an ADD:
// an attempt that is undone leaves them as they were.
Result<void> ReadDriverSettings(Kernel& kernel, const PodNetwork& network, AttachPlan& plan);

// Before addresses are known: enough to restore every device. Says in the plan which RDMA devices are moved.
Result<JournalEntry> DescribeAttachment(const Root& root, Kernel& kernel, const PodNetwork& network,
                                        const CniRequest& request, AttachPlan& plan);

// Adds what the pod is promised by `addressing`, one for each device.
Result<void> DescribeAddressing(PodNetwork& network, const AttachPlan& plan,
                                const std::vector<Addressing>& addressing, JournalEntry& entry);

}  // namespace railhead::attachment

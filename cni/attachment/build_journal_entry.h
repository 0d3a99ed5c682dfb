// BuildJournalEntry: the journal entry that ADD writes before its first change.
// Threads: as Kernel. Callers hold the devices' locks. Errors: kConflict for the RDMA mode (rdma_mode.h).
#pragma once

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/protocol/cni_request.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Addresses are not known yet. The entry is enough to restore every device. Sets in the plan which RDMA
// devices ADD moves.
Result<JournalEntry> BuildJournalEntry(const Root& root, Kernel& kernel, const PodNetwork& network,
                                       const CniRequest& request, AttachPlan& plan);

}  // namespace railhead::attachment

// What ADD records before its first change: the journal entry, and who gets each device.
// Threads: as Kernel. Callers hold the devices' locks.
#pragma once

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/protocol/cni_request.h"
#include "cni/state/journal.h"
#include "cni/state/tenants.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Addresses are not known yet. The entry is enough to restore every device. Sets in the plan which RDMA
// devices ADD moves.
Result<JournalEntry> BuildJournalEntry(const Root& root, Kernel& kernel, const PodNetwork& network,
                                       const CniRequest& request, AttachPlan& plan);

Result<void> RecordTenant(const Root& root, const Tenant& tenant, const AttachPlan& plan);

}  // namespace railhead::attachment

// Devices that go from one tenant to the next: what ADD does about it.
//
// The namespace of the pod is the tenant. A device of another tenant, or one on which something of the last
// pod may be left, is made anew (reset.h). One that cannot be made anew is refused while somebody uses it
// (device_use.h). The fabric's `policy.reset` says `always` or `never`
// instead.
//
// A device of the same tenant costs the reading of its record and no question to the kernel.
// Threads: as Kernel. Callers hold the devices' locks. Errors: kBusy when a device is in use.
#pragma once

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/fabric/policy.h"
#include "cni/state/journal.h"
#include "cni/state/tenants.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

// true: devices were made anew, and what `plan` says of their interfaces is out of date.
Result<bool> MakeReadyFor(const Root& root, Kernel& kernel, const Journal& journal, const Tenant& tenant,
                          ResetPolicy policy, const AttachPlan& plan);

// Before the first change to the devices.
Result<void> RecordTenant(const Root& root, const Tenant& tenant, const AttachPlan& plan);

}  // namespace railhead

// What ADD does with a device that another tenant had.
//
// A tenant is the namespace of a pod. ADD resets a device that another tenant had last, or on which something
// of the last pod may be left. It refuses a device that cannot be reset while a process or interface still
// uses it. The fabric's `policy.reset` can be `always` or `never` instead.
//
// For a device of the same tenant this reads only its record, and does not ask the kernel.
// Threads: as Kernel. Callers hold the devices' locks. Errors: kBusy when a device is in use.
#pragma once

#include "cni/attachment/attach_plan.h"
#include "cni/fabric/network_policy.h"
#include "cni/state/journal.h"
#include "cni/state/tenants.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// true: devices were reset, so their interfaces in `plan` are out of date.
Result<bool> MakeReadyFor(const Root& root, Kernel& kernel, const Journal& journal, const Tenant& tenant,
                          ResetPolicy policy, const AttachPlan& plan);

}  // namespace railhead::attachment

// RecordTenant: records who gets the devices, before ADD's first change (cni/state/tenants.h).
// Threads: callers hold the devices' locks. Errors: those of the records' files.
#pragma once

#include "cni/attachment/attach_plan.h"
#include "cni/state/tenants.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::attachment {

Result<void> RecordTenant(const Root& root, const Tenant& tenant, const AttachPlan& plan);

}  // namespace railhead::attachment

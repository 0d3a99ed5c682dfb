// What a device is on the host before a pod gets it: what the journal stores, and DEL restores.
// Threads: reads sysfs and state files.
#pragma once

#include "cni/attachment/attach_plan.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::attachment {

// Reads into plan.record.before what the device is on the host. Function, link and VF are known already.
Result<void> ReadHostState(const Root& root, DevicePlan& plan);

}  // namespace railhead::attachment

// What a device is on the host before a pod gets it: what the journal stores, and DEL restores.
// Threads: as Kernel.
#pragma once

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Reads into plan.record.before what the device is on the host. Function, link and VF are known already.
Result<void> ReadHostState(const Root& root, DevicePlan& plan);

// Reads the driver settings of the devices that will be moved. All attempts of an ADD use the same reading:
// an attempt that is undone restores them.
Result<void> ReadDriverSettings(Kernel& kernel, const PodNetwork& network, AttachPlan& plan);

}  // namespace railhead::attachment

// ReadDriverSettings: the settings of a device's driver before a pod gets it, which DEL restores.
// Threads: as Kernel. Errors: those of the kernel, with the device.
#pragma once

#include <span>

#include "cni/attachment/attach_plan.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Reads the driver settings of the devices that will be moved. All attempts of an ADD use the same reading:
// an attempt that is undone restores them.
Result<void> ReadDriverSettings(Kernel& kernel, const NetNs& host_ns, std::span<DevicePlan> plans);

}  // namespace railhead::attachment

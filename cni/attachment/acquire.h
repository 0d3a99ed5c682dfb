// Claiming devices for an ADD: locked, at home, and free of earlier attachments.
//
// kubelet may hand a VF out before the DEL of its last pod has finished: a claim waits
// for it, bounded, without holding its lock. An earlier attachment that was killed,
// or whose pod's namespace is gone, is finished on the spot.
// Threads: as Kernel; other processes are kept out by the devices' locks.
// Errors: kBusy when a device is still in use at the deadline, kExists when this very
// attachment is there already.
#pragma once

#include "cni/attachment/device_locks.h"
#include "cni/attachment/devices.h"
#include "cni/protocol/plugin.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

// The locks of the devices, and of those that an earlier attachment had besides.
Result<DeviceLocks> ClaimDevices(const Root& root, Kernel& kernel, const Journal& journal,
                                 const CniRequest& request, const DeviceChoice& choice, Deadline deadline);

}  // namespace railhead

// Acquires the devices of an ADD: locks them, and makes sure that they are on the host and free.
//
// kubelet may allocate a VF before the DEL of its last pod has finished. Then ADD waits for that DEL until a
// deadline, without holding the lock. ADD itself releases an earlier attachment whose ADD was killed, whose
// pod's namespace is gone, or whose sandbox the runtime has replaced by this one.
// Threads: as Kernel; other processes are kept out by the devices' locks.
// Errors: kBusy when a device is still in use at the deadline, kExists when the same attachment exists.
#pragma once

#include "cni/attachment/device_locks.h"
#include "cni/attachment/devices.h"
#include "cni/protocol/cni_request.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Returns the locks of the devices, and of the further devices of stale attachments that it released.
Result<DeviceLocks> AcquireDevices(const Root& root, Kernel& kernel, const Journal& journal,
                                   const CniRequest& request, const DeviceChoice& choice, Deadline deadline);

}  // namespace railhead::attachment

// Restores devices to the host: the one code path for a failed ADD, a killed ADD, DEL and the reconciler.
//
// Needs only the journal entry and the present state. Every step checks what is still to be done, so restore
// can be interrupted and run again at any point. Afterwards names, MAC, MTU, administrative state, tuning,
// driver settings and the VF settings that ADD changed are as the entry says. If settings cannot be restored,
// the driver is bound again. If another interface has the original name now, the device is renamed to `rh`
// and its PCI address.
//
// VLAN and macvlan interfaces that the pod created on the device are deleted, many of them by binding the
// driver again. One that was moved to a third namespace is not visible here: the next ADD finds it.
//
// Callers hold the devices' locks and remove the entry when this succeeds.
// The kernel returns the devices of a deleted namespace asynchronously. If no reachable namespace has the
// netdev at the deadline, a process keeps the namespace, or the pod gave the device to another pod. Then the
// driver is bound again, which brings the device back, unless the deadline had passed before.
// Errors: kBusy when the device has not come back.
#pragma once

#include <functional>
#include <string>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Called before a driver is bound again. Stores `why` as the device's rebound_for, so that the next try
// completes an interrupted rebind.
using BeforeRebind = std::function<Result<void>(const std::string& device, const std::string& why)>;

// `pod_ns`: the pod's namespace; nullptr: it is gone.
Result<void> RestoreToHost(const Root& root, Kernel& kernel, const JournalEntry& entry, const NetNs* pod_ns,
                           Deadline deadline, const BeforeRebind& before_rebind);

// Binds the driver of a device on the host again, and restores the state in `device`. If this is interrupted,
// RestoreToHost() completes it, with an entry that has `device` and a `rebound_for`.
Result<void> RebindOnHost(const Root& root, Kernel& kernel, const AttachedDevice& device, Deadline deadline);

}  // namespace railhead::attachment

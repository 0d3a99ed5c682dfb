// Bringing devices home: the one way back, for a failed ADD, a killed ADD, DEL,
// and the reconciler.
//
// Works from the journal entry alone and from what it finds: every step looks
// first and does only what is still to be done, so it can be interrupted and run
// again at any point. What the pod has stacked on a device (a VLAN, a macvlan) is removed
// with it; only one in a third namespace cannot be seen, and goes with that. Afterwards names, MAC, MTU,
// administrative state, tuning, the settings that go with a device and the VF settings
// that ADD changed are as the entry says they were. Settings that cannot be put back go with the driver,
// which is bound anew then. (Only a name that someone else on the host has taken meanwhile becomes another:
// rh and the address.)
//
// Callers hold the devices' locks and remove the entry when this succeeds.
// Errors: kBusy when the netdev is in no namespace that can be reached by the
// deadline (a dying namespace gives its devices back asynchronously).
#pragma once

#include <functional>
#include <string>

#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Called before a driver is bound anew. It stores `why` as the device's rebound_for, so that the next try
// finishes a rebind that was interrupted.
using BeforeRebind = std::function<Result<void>(const std::string& device, const std::string& why)>;

// `pod_ns`: the pod's namespace; nullptr: it is gone.
Result<void> BringHome(const Root& root, Kernel& kernel, const JournalEntry& entry, const NetNs* pod_ns,
                       Deadline deadline, const BeforeRebind& before_rebind);

// Binds the driver of a device on the host anew, and restores what `device` says of the host. When this is
// interrupted, BringHome() with an entry that has `device` and a `rebound_for` completes it.
Result<void> RebindOnHost(const Root& root, Kernel& kernel, const AttachedDevice& device, Deadline deadline);

}  // namespace railhead::attachment

// Makes a device anew between two pods, so that nothing of the first one works on it for the second one.
//
// A device with a network driver has that bound anew: this ends interfaces on top of it in all namespaces,
// RDMA contexts, XDP and tc programs, and settings. One that programs drive gets a function-level reset, when
// no program has it any more. Its names, MAC, MTU, administrative state, settings and VF settings are as
// before.
//
// A journal entry of its own (IsReset) says meanwhile what the device was before: a reset that is interrupted
// is completed by the next ADD, or by railheadd, like a killed ADD. Threads: as Kernel. Callers hold the
// device's lock, and the device is in no attachment. Errors: kBusy when a process has what keeps a driver
// from being unbound; what is not done after another error is in that entry.
#pragma once

#include <string>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

struct ResetOutcome {
  // Why this device cannot be made anew, for all that is known; "": it was, or has no driver that it would
  // have to be taken from. Nothing has changed then.
  std::string impossible;
};

// The device's record (cni/state/tenants.h) is gone when it is made anew. `why`: for the log of attachments.
Result<ResetOutcome> ResetDevice(const Root& root, Kernel& kernel, const Journal& journal,
                                 const std::string& device, const std::string& why);

}  // namespace railhead

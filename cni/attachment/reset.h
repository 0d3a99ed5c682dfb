// Resets a device between two pods, so that nothing of the first pod still works on it.
//
// The network driver of a device is bound again. This removes interfaces on top of the device in all
// namespaces, RDMA contexts, XDP and tc programs, and settings. A device with a user-space driver gets a
// function-level reset, once no process has it open. Names, MAC, MTU, administrative state, settings and VF
// settings are as before afterwards.
//
// During the reset a journal entry of its own (IsReset) stores what the device was before. The next ADD or
// railheadd completes an interrupted reset, as after a killed ADD. Threads: as Kernel. Callers hold the
// device's lock, and the device is in no attachment. Errors: kBusy if a process has something open that keeps
// the driver from being unbound. After other errors the entry stays, for the rest of the work.
#pragma once

#include <string>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

struct ResetOutcome {
  // Why this device cannot be reset; nothing has changed then. "": it was reset, or has no driver.
  std::string impossible;
};

// Removes the device's record (cni/state/tenants.h) when it is reset. `why`: for the log of attachments.
Result<ResetOutcome> ResetDevice(const Root& root, Kernel& kernel, const Journal& journal,
                                 const std::string& device, const std::string& why);

}  // namespace railhead::attachment

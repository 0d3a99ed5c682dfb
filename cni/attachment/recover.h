// Releases an attachment whose journal entry cannot be read.
//
// Restores the readable part of the entry like a release. Only the address of a device is known if its part
// cannot be read. With `force` the driver of such a device is bound again, which brings the device to the
// host under its own name. Its VF gets defaults: no VLAN, no rate limit, spoof check on, not trusted.
// Threads: as Kernel. Callers hold the locks of the entry's devices.
#pragma once

#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

struct Recovery {
  std::vector<std::string> restored;  // devices, as before the pod
  std::vector<std::string> reset;     // devices that got defaults, since their earlier settings are unknown
  std::vector<std::string> lost;      // parts that were not restored, and why
  bool ended = false;                 // the entry is gone
};

// Without `force` an entry that is not fully restored stays, so that its devices are not allocated. If its
// pod runs, or may run, the error without `force` is kBusy, and nothing was changed.
Result<Recovery> RecoverAttachment(const Root& root, Kernel& kernel, const Journal& journal,
                                   const UnreadableEntry& file, bool force);

}  // namespace railhead::attachment

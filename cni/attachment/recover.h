// Ending an attachment whose journal entry cannot be read.
//
// What the entry still says is restored as by a release. Of a device whose part cannot be read nothing is
// known but its address: with `force` its driver is bound anew, which brings it to the host under its own
// name, and its VF gets a PF's defaults: no VLAN, no rate limit, spoof check on, not trusted. Threads: as
// Kernel. Callers hold the locks of the entry's devices.
#pragma once

#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

struct Recovery {
  std::vector<std::string> restored;  // devices, as before the pod
  std::vector<std::string> reset;     // devices that got defaults, for nobody knows what was before
  std::vector<std::string> lost;      // what was not restored, and why
  bool ended = false;                 // the entry is gone
};

// Without `force` an entry of which something is lost stays, so that its devices are not given out. kBusy:
// its pod lives, or may live, and `force` was not given; nothing was touched then.
Result<Recovery> RecoverAttachment(const Root& root, Kernel& kernel, const Journal& journal,
                                   const UnreadableEntry& file, bool force);

}  // namespace railhead

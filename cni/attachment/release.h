// Ending an attachment: the one way, for a failed ADD, a killed ADD, DEL, GC and
// the reconciler.
//
// Devices first, then handoff and addresses: an address must not go to another pod
// while a device still has it. The entry goes last: while there is one, whoever
// failed or was killed in the middle comes again. If the IPAM plugin fails, an entry without devices stays:
// DEL and railheadd ask again, and the devices are free meanwhile. Callers hold the locks of the entry's
// devices (DevicesOf). Threads: as Kernel.
#pragma once

#include <set>
#include <string>

#include "cni/attachment/device_locks.h"
#include "cni/protocol/plugin.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

std::set<std::string> DevicesOf(const JournalEntry& entry);

struct ReleaseOptions {
  // Until when to wait for a device that no reachable namespace has.
  Deadline deadline = HomeDeadline();
  // A handle that the caller holds on the pod's namespace. The namespace lives as long as the handle,
  // also when its path is gone: without it the release would wait for its own caller.
  const NetNs* pod_ns = nullptr;
};

// `request`: where IPAM plugins are (else where ADD found them), and, when it is
// about this very attachment, a path to the pod's namespace.
Result<void> ReleaseAttachment(const Root& root, Kernel& kernel, const Journal& journal,
                               const CniRequest& request, const JournalEntry& entry,
                               const ReleaseOptions& options = {});

}  // namespace railhead

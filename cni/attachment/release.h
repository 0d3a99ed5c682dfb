// Releases an attachment: the one code path for a failed ADD, a killed ADD, DEL, GC and the reconciler.
//
// Restores the devices first, then removes NCCL configuration and addresses: no other pod may get an address
// that a device still has. Deletes the journal entry last, so that an interrupted release is run again from
// the start. If the IPAM plugin fails, the entry stays without devices. The devices are free then, while DEL
// and railheadd run the plugin again. Callers hold the locks of the entry's devices (DevicesOf). Threads: as
// Kernel.
#pragma once

#include "cni/attachment/device_locks.h"
#include "cni/protocol/cni_request.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

struct ReleaseOptions {
  // Until when to wait for a device that no reachable namespace has (cni/attachment/restore.h).
  Deadline deadline = RestoreDeadline();
  // The caller's handle of the pod's namespace. The handle keeps the namespace alive when its path is gone:
  // without this field the release would wait for its own caller.
  const NetNs* pod_ns = nullptr;
};

// `request`: where IPAM plugins are (otherwise where ADD found them). If it is a request for this attachment,
// also a path of the pod's namespace.
Result<void> ReleaseAttachment(const Root& root, Kernel& kernel, const Journal& journal,
                               const CniRequest& request, const JournalEntry& entry,
                               const ReleaseOptions& options = {});

}  // namespace railhead::attachment

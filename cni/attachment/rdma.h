// The RDMA side of an attachment: soft RoCE made on the VF in the pod, hardware
// devices moved in exclusive mode, the GID and the uverbs node waited for.
// Threads: as Kernel.
#pragma once

#include <string>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

// Makes or moves link.rdma_device, as the entry says. A soft RoCE device of that name that
// is about to go is waited for.
Result<void> ProvideRdma(const Root& root, Kernel& kernel, const AttachedLink& link, const NetNs& pod,
                         Deadline deadline);

// Takes it back; succeeds when nothing is left to do.
Result<void> ReturnRdma(const Root& root, Kernel& kernel, const AttachedLink& link, const NetNs& pod,
                        const NetNs& host);

// The address whose GID is handed over: the first of IPv4, else the first. nullptr: it has none.
const IpAddress* GidAddressOf(const AttachedLink& link);

struct RdmaReady {
  GidEntry gid;
  std::string uverbs;  // "uverbs3"
};

// Waits until the port is ACTIVE, the RoCE v2 GID of `address` on the pod's
// interface is in the table as the pod sees it, and the uverbs node exists.
// kTimeout with the table in the message otherwise.
Result<RdmaReady> WaitRdma(const Root& root, Kernel& kernel, const AttachedLink& link, const NetNs& pod,
                           const IpAddress& address, Deadline deadline);

}  // namespace railhead

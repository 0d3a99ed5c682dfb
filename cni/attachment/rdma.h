// The RDMA part of an attachment. It adds soft RoCE devices in the pod, moves hardware devices in exclusive
// mode, and waits for the GID and the uverbs node. Threads: as Kernel.
#pragma once

#include <string>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Adds or moves the RDMA device, as the entry says. Waits while the kernel still removes a soft RoCE device
// of that name.
Result<void> ProvideRdma(const Root& root, Kernel& kernel, const AttachedDevice& device, const NetNs& pod,
                         Deadline deadline);

// Removes it, or moves it back to the host. Succeeds when nothing is left to do.
Result<void> ReturnRdma(const Root& root, Kernel& kernel, const AttachedDevice& device, const NetNs& pod,
                        const NetNs& host);

// The address whose GID is in the NCCL configuration: the first IPv4 address, else the first. nullptr: none.
const IpAddress* GidAddressOf(const AttachedDevice& device);

struct RdmaReady {
  GidEntry gid;
  std::string uverbs;  // "uverbs3"
};

// Waits for an ACTIVE port, for the uverbs node, and for the RoCE v2 GID of `address` on the pod's interface.
// After the deadline kTimeout, with the GID table in the message.
Result<RdmaReady> WaitRdma(const Root& root, Kernel& kernel, const AttachedDevice& device, const NetNs& pod,
                           const IpAddress& address, Deadline deadline);

}  // namespace railhead::attachment

// RdmaApi over an RDMA netlink socket in one network namespace.
// Threads and errors: see netns/kernel.h.
#pragma once

#include <memory>

#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/ns/netns.h"

namespace railhead {

// kUnsupported when the kernel has no RDMA subsystem (loaded).
Result<std::unique_ptr<RdmaApi>> OpenNetlinkRdma(const NetNs& ns);

}  // namespace railhead

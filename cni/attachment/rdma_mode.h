// The node's RDMA namespace mode, which nobody may change under running pods.
//
// shared: every namespace sees every RDMA device; exclusive: a device moves with its
// NIC. The mode is a setting of the whole node (`rdma system set netns`) that other
// programs change too. The fabric's "rdmaMode" says what it must be; without one
// it must stay what it was at this boot's first ADD (/run/railhead/rdma-mode).
// Threads: as Kernel. Errors: kConflict when it is another one, with the way out.
#pragma once

#include <optional>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

// The mode, agreed with what was demanded or with what is on record; puts it on
// record when nothing is.
Result<RdmaNetnsMode> AgreeOnRdmaMode(const Root& root, Kernel& kernel,
                                      std::optional<RdmaNetnsMode> demanded);

// The same without recording. Without an RDMA subsystem there is nothing to agree on.
Result<void> CheckRdmaMode(const Root& root, Kernel& kernel, std::optional<RdmaNetnsMode> demanded);

}  // namespace railhead

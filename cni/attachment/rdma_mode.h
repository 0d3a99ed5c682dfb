// The node's RDMA namespace mode, which must not change while pods run.
//
// shared: every namespace sees every RDMA device; exclusive: a device moves with its
// NIC. The mode is a setting of the whole node (`rdma system set netns`) that other
// programs change, too. The fabric's "rdmaMode" sets what it must be. Without that key it must stay as it was
// at this boot's first ADD (/run/railhead/rdma-mode). Threads: as Kernel. Errors: kConflict when it is
// another one; the hint says how to fix that.
#pragma once

#include <optional>

#include "cni/attachment/attach_plan.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// The mode, checked against `demanded` or against the record. Writes the record if it does not exist.
Result<RdmaNetnsMode> AgreeOnRdmaMode(const Root& root, Kernel& kernel,
                                      std::optional<RdmaNetnsMode> demanded);

// The same without writing. Succeeds without an RDMA subsystem.
Result<void> CheckRdmaMode(const Root& root, Kernel& kernel, std::optional<RdmaNetnsMode> demanded);

// Sets in the plan whether the device's RDMA device is moved into the pod.
Result<void> AgreeOnRdma(const Root& root, Kernel& kernel, const AttachPlan& plan, DevicePlan& device);

}  // namespace railhead::attachment

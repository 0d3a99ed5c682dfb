// The RDMA part of an attachment. It adds soft RoCE devices in the pod, moves hardware devices in exclusive
// mode, and waits for the GID and the uverbs node. Threads: as Kernel.
#pragma once

#include <optional>
#include <string>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/plugin_config.h"
#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Sets which RDMA device the pod will use, and whether ADD adds it. A request for soft RoCE gives kInvalid if
// the device has a hardware RDMA device.
Result<void> PlanRdma(const Root& root, const PluginConfig& config, DevicePlan& plan);

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

// The node's RDMA namespace mode, which must not change while pods run.
//
// shared: every namespace sees every RDMA device; exclusive: a device moves with its
// NIC. The mode is a setting of the whole node (`rdma system set netns`) that other
// programs change, too. The fabric's "rdmaMode" sets what it must be. Without that key it must stay as it was
// at this boot's first ADD (/run/railhead/rdma-mode). Threads: as Kernel. Errors: kConflict when it is
// another one; the hint says how to fix that.

// The mode, checked against `demanded` or against the record. Writes the record if it does not exist.
Result<RdmaNetnsMode> AgreeOnRdmaMode(const Root& root, Kernel& kernel,
                                      std::optional<RdmaNetnsMode> demanded);

// The same without writing. Succeeds without an RDMA subsystem.
Result<void> CheckRdmaMode(const Root& root, Kernel& kernel, std::optional<RdmaNetnsMode> demanded);

// Sets in the plan whether the device's RDMA device is moved into the pod.
Result<void> AgreeOnRdma(const Root& root, Kernel& kernel, const AttachPlan& plan, DevicePlan& device);

}  // namespace railhead::attachment

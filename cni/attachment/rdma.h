// The RDMA side of an attachment: soft RoCE made on the VF in the pod, hardware
// devices moved in exclusive mode, the GID and the uverbs node waited for.
// Threads: as Kernel.
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

// Which RDMA device the pod will use, and whether ADD makes it. kInvalid when soft RoCE is asked for and the
// device has an RDMA device itself.
Result<void> PlanRdma(const Root& root, const PluginConfig& config, DevicePlan& plan);

// Makes or moves its RDMA device, as the entry says. A soft RoCE device of that name that
// is about to go is waited for.
Result<void> ProvideRdma(const Root& root, Kernel& kernel, const AttachedDevice& device, const NetNs& pod,
                         Deadline deadline);

// Takes it back; succeeds when nothing is left to do.
Result<void> ReturnRdma(const Root& root, Kernel& kernel, const AttachedDevice& device, const NetNs& pod,
                        const NetNs& host);

// The address whose GID is handed over: the first of IPv4, else the first. nullptr: it has none.
const IpAddress* GidAddressOf(const AttachedDevice& device);

struct RdmaReady {
  GidEntry gid;
  std::string uverbs;  // "uverbs3"
};

// Waits until the port is ACTIVE, the RoCE v2 GID of `address` on the pod's
// interface is in the table as the pod sees it, and the uverbs node exists.
// kTimeout with the table in the message otherwise.
Result<RdmaReady> WaitRdma(const Root& root, Kernel& kernel, const AttachedDevice& device, const NetNs& pod,
                           const IpAddress& address, Deadline deadline);

// The node's RDMA namespace mode, which nobody may change under running pods.
//
// shared: every namespace sees every RDMA device; exclusive: a device moves with its
// NIC. The mode is a setting of the whole node (`rdma system set netns`) that other
// programs change too. The fabric's "rdmaMode" says what it must be; without one
// it must stay what it was at this boot's first ADD (/run/railhead/rdma-mode).
// Threads: as Kernel. Errors: kConflict when it is another one, with the way out.

// The mode, agreed with what was demanded or with what is on record; puts it on
// record when nothing is.
Result<RdmaNetnsMode> AgreeOnRdmaMode(const Root& root, Kernel& kernel,
                                      std::optional<RdmaNetnsMode> demanded);

// The same without recording. Without an RDMA subsystem there is nothing to agree on.
Result<void> CheckRdmaMode(const Root& root, Kernel& kernel, std::optional<RdmaNetnsMode> demanded);

// Says in the plan whether the device's RDMA device is moved into the pod.
Result<void> AgreeOnRdma(const Root& root, Kernel& kernel, const AttachPlan& plan, DevicePlan& device);

}  // namespace railhead::attachment

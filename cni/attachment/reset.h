// Makes a device anew between two pods, so that nothing of the first one works on it for the second one.
//
// A device with a network driver has that bound anew: this ends interfaces on top of it in all namespaces,
// RDMA contexts, XDP and tc programs, and settings. One that programs drive gets a function-level reset, when
// no program has it any more. Its names, MAC, MTU, administrative state, settings and VF settings are as
// before.
//
// A journal entry of its own (IsReset) says meanwhile what the device was before: a reset that is interrupted
// is completed by the next ADD, or by railheadd, like a killed ADD. Threads: as Kernel. Callers hold the
// device's lock, and the device is in no attachment. Errors: kBusy when a process has what keeps a driver
// from being unbound; what is not done after another error is in that entry.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/fabric/fabric.h"
#include "cni/state/journal.h"
#include "cni/state/tenants.h"
#include "netns/base/files.h"
#include "netns/base/poll_pause.h"
#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/sys/pci.h"

namespace railhead::attachment {

struct ResetOutcome {
  // Why this device cannot be made anew, for all that is known; "": it was, or has no driver that it would
  // have to be taken from. Nothing has changed then.
  std::string impossible;
};

// The device's record (cni/state/tenants.h) is gone when it is made anew. `why`: for the log of attachments.
Result<ResetOutcome> ResetDevice(const Root& root, Kernel& kernel, const Journal& journal,
                                 const std::string& device, const std::string& why);

// What a VF's interface refuses while its PF resets the VF.
//
// ice and i40e reset a VF when its MAC, VLAN or trust is set through the PF (ice_set_vf_mac,
// i40e_ndo_set_vf_mac and their siblings). Until iavf has come to terms with its PF again, it answers EAGAIN
// or EACCES for a new MAC (iavf_set_mac) and EBUSY for a link that is to come up (iavf_open). Threads: any.
// Errors: those of the call, when they last for kVfResetLimit or mean something else.

// A reset takes some hundred milliseconds; iavf waits 2.5 s for an answer of the PF.
inline constexpr std::chrono::seconds kVfResetLimit{10};

// Calls again while a reset may be the reason for a refusal.
template <typename Call>
Result<void> CallDuringReset(const Call& call, Deadline deadline = Deadline::max()) {
  deadline = std::min(deadline, std::chrono::steady_clock::now() + kVfResetLimit);
  for (PollPause pause;;) {
    Result<void> done = call();
    const int error = done ? 0 : done.error().sys_errno;
    const bool of_reset = error == EAGAIN || error == EACCES || error == EBUSY;
    if (!of_reset || std::chrono::steady_clock::now() >= deadline) return done;
    std::this_thread::sleep_for(pause.Next());
  }
}

// Binds a device's driver anew. The driver then reads the VF's MAC, and starts with its default settings.
// What processes and pods have left on the device is gone: interfaces on top of it in every namespace, XDP
// and tc programs, RDMA contexts (drivers of hardware disassociate them, ib_uverbs_remove_one). Threads: as
// Kernel. Errors: kTimeout when the interface does not come back.

// Drivers that take a VF's administrative MAC only when they bind: "Reload the VF
// driver to make this change effective" (igb_ndo_set_vf_mac, ixgbe_ndo_set_vf_mac).
bool NeedsRebindForMac(const std::string& driver);

// Returns the device's new interface on the host.
Result<Link> RebindAndAwait(const Root& root, Kernel& kernel, RouteApi& host, const PciAddress& device);

// The same, and the interface has its former MAC afterwards with drivers that take it from the PF.
Result<Link> RebindKeepingMac(const Root& root, Kernel& kernel, RouteApi& host, const AttachedDevice& device);

// The PF's interface on the host; nullopt: the PF was removed, and the VF with it.
Result<std::optional<Link>> FindPfOnHost(const Root& root, RouteApi& host, const AttachedDevice& device);

// Devices that go from one tenant to the next: what ADD does about it.
//
// The namespace of the pod is the tenant. A device of another tenant, or one on which something of the last
// pod may be left, is made anew (reset.h). One that cannot be made anew is refused while somebody uses it
//. The fabric's `policy.reset` says `always` or `never`
// instead.
//
// A device of the same tenant costs the reading of its record and no question to the kernel.
// Threads: as Kernel. Callers hold the devices' locks. Errors: kBusy when a device is in use.

// true: devices were made anew, and what `plan` says of their interfaces is out of date.
Result<bool> MakeReadyFor(const Root& root, Kernel& kernel, const Journal& journal, const Tenant& tenant,
                          ResetPolicy policy, const AttachPlan& plan);

// Before the first change to the devices.
Result<void> RecordTenant(const Root& root, const Tenant& tenant, const AttachPlan& plan);

// Who still uses a device that is at home: what processes of an earlier pod can keep.
//
// Threads: as Kernel. Errors: kBusy names the device, and the process or interface that uses it; kPermission:
// /proc does not show to us what some process has open.

// That nobody has a node open which leads to the device: its VFIO group, its UIO or uverbs device.
Result<void> RequireNodesClosed(const Root& root, const std::string& device);

// That no process has resources of these RDMA devices of it.
Result<void> RequireRdmaUnused(const Root& root, Kernel& kernel, const std::string& device,
                               const std::vector<std::string>& rdma_devices);

// Both, and that nothing is stacked on it in another namespace: those of processes, of attachments, and those
// with a name. A namespace that only a descriptor keeps is not found. `on_host`: nullopt, it has no
// interface.
Result<void> RequireUnused(const Root& root, Kernel& kernel, const Journal& journal, const PciDevice& device,
                           const std::optional<Link>& on_host);

}  // namespace railhead::attachment

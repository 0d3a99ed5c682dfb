// Resets a device between two pods, so that nothing of the first pod still works on it.
//
// The network driver of a device is bound again. This removes interfaces on top of the device in all
// namespaces, RDMA contexts, XDP and tc programs, and settings. A device with a user-space driver gets a
// function-level reset, once no process has it open. Names, MAC, MTU, administrative state, settings and VF
// settings are as before afterwards.
//
// During the reset a journal entry of its own (IsReset) stores what the device was before. The next ADD or
// railheadd completes an interrupted reset, as after a killed ADD. Threads: as Kernel. Callers hold the
// device's lock, and the device is in no attachment. Errors: kBusy if a process has something open that keeps
// the driver from being unbound. After other errors the entry stays, for the rest of the work.
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
  // Why this device cannot be reset; nothing has changed then. "": it was reset, or has no driver.
  std::string impossible;
};

// Removes the device's record (cni/state/tenants.h) when it is reset. `why`: for the log of attachments.
Result<ResetOutcome> ResetDevice(const Root& root, Kernel& kernel, const Journal& journal,
                                 const std::string& device, const std::string& why);

// Calls that a VF's interface refuses while its PF resets the VF.
//
// Drivers ice and i40e reset a VF when its MAC, VLAN or trust is set through the PF (ice_set_vf_mac,
// i40e_ndo_set_vf_mac and their siblings). Until iavf has negotiated with its PF again, it refuses a new MAC
// with EAGAIN or EACCES (iavf_set_mac), and link up with EBUSY (iavf_open). Threads: any. Errors: those of
// the call, if they last for kVfResetLimit or have another code.

// A reset takes some hundred milliseconds; iavf waits 2.5 s for an answer of the PF.
inline constexpr std::chrono::seconds kVfResetLimit{10};

// Repeats the call while a reset may be the reason for its error.
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

// Binds a device's driver again. The driver then reads the VF's MAC, and starts with its default settings.
// This removes interfaces on top of the device in every namespace, XDP and tc programs, and RDMA contexts
// (hardware drivers disassociate them, ib_uverbs_remove_one). Threads: as Kernel. Errors: kTimeout when the
// interface does not come back.

// Drivers that take a VF's administrative MAC only when they bind: "Reload the VF
// driver to make this change effective" (igb_ndo_set_vf_mac, ixgbe_ndo_set_vf_mac).
bool NeedsRebindForMac(const std::string& driver);

// Returns the device's new interface on the host.
Result<Link> RebindAndAwait(const Root& root, Kernel& kernel, RouteApi& host, const PciAddress& device);

// The same, and the interface has its former MAC afterwards with drivers that take it from the PF.
Result<Link> RebindKeepingMac(const Root& root, Kernel& kernel, RouteApi& host, const AttachedDevice& device);

// The PF's interface on the host; nullopt: the PF was removed, and the VF with it.
Result<std::optional<Link>> FindPfOnHost(const Root& root, RouteApi& host, const AttachedDevice& device);

// What ADD does with a device that another tenant had.
//
// A tenant is the namespace of a pod. ADD resets a device that another tenant had last, or on which something
// of the last pod may be left. It refuses a device that cannot be reset while a process or interface still
// uses it. The fabric's `policy.reset` can be `always` or `never` instead.
//
// For a device of the same tenant this reads only its record, and does not ask the kernel.
// Threads: as Kernel. Callers hold the devices' locks. Errors: kBusy when a device is in use.

// true: devices were reset, so their interfaces in `plan` are out of date.
Result<bool> MakeReadyFor(const Root& root, Kernel& kernel, const Journal& journal, const Tenant& tenant,
                          ResetPolicy policy, const AttachPlan& plan);

// Before the first change to the devices.
Result<void> RecordTenant(const Root& root, const Tenant& tenant, const AttachPlan& plan);

// What still uses a device on the host: processes and interfaces that an earlier pod left.
//
// Threads: as Kernel. Errors: kBusy names the device, and the process or interface that uses it. kPermission:
// /proc does not show the open files of some process.

// kBusy when a process has a device node of the device open: its VFIO group, its UIO or uverbs device.
Result<void> RequireNodesClosed(const Root& root, const std::string& device);

// kBusy when a process has resources of these RDMA devices of the device.
Result<void> RequireRdmaUnused(const Root& root, Kernel& kernel, const std::string& device,
                               const std::vector<std::string>& rdma_devices);

// Both, and kBusy when another namespace has an interface on top of the device. Checks the namespaces of
// processes, of attachments, and those with a name, but not one that only a descriptor keeps alive.
// `on_host`: nullopt if the device has no interface.
Result<void> RequireUnused(const Root& root, Kernel& kernel, const Journal& journal, const PciDevice& device,
                           const std::optional<Link>& on_host);

}  // namespace railhead::attachment

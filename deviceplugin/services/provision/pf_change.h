// Carries out one PF's plan.
//
// VFs are made with autoprobe off. Then they get their MACs, and are bound one after the other in the order
// of their index. This has three reasons.
//
//   - A driver reads the MAC that was set through the PF when it binds.
//
//   - The kernel would otherwise probe drivers in parallel (PROBE_PREFER_ASYNCHRONOUS in drivers/base/dd.c).
//     But the order of binding decides the names of netdevs and RDMA devices, and they must be the same on
//     every node. An RDMA device gets the lowest free mlx5_N (alloc_name in
//     drivers/infiniband/core/device.c).
//
//   - No kernel driver may touch a VF that is meant for another one.
//
// If a step fails before the VFs are bound, everything is undone: the earlier count, MACs and drivers come
// back. A later failure (a driver that does not take a VF) is not undone: the other VFs work. From there on a
// stop takes effect between two VFs. It keeps the mark (MarkUnderWay), by which the next run starts again.
// Ownership: borrows all; holds the device locks of VFs that it made until it is gone. The
// caller holds the locks of the PF and its earlier VFs. Threads: as Kernel.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "cni/attachment/device_locks.h"
#include "deviceplugin/services/provision/apply_watch.h"
#include "deviceplugin/services/provision/pf_plan.h"
#include "deviceplugin/services/provision/pf_state.h"
#include "deviceplugin/services/provision/vf_control.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/undo_stack.h"
#include "netns/kernel.h"

namespace railhead::provision {

class PfChange {
 public:
  // `deadline`: for interfaces to appear. Drivers get less: kDriverLimit.
  PfChange(const Root& root, RouteApi& host, VfControl& control, const PfPlan& plan, Deadline deadline,
           ApplyWatch watch = {});

  // Does the steps. The caller checks whether the PF then is as planned.
  Result<void> Run();

 private:
  // The kernel offers a VF to the loaded drivers before a write to drivers_probe returns (device_attach in
  // drivers/base/dd.c). A driver takes it later only if its module is being loaded or it waits for another
  // device.
  static constexpr std::chrono::seconds kDriverLimit{10};

  Result<void> ChangePf(UndoStack& undo);
  Result<void> Replace(UndoStack& undo);
  Result<void> Change(UndoStack& undo);
  // Removes the present VFs and makes `vfs`, without drivers.
  Result<void> Make(const std::vector<VfTarget>& vfs);
  // Sets drivers, and the settings that need them. Continues after an error, and returns the first.
  Result<void> Settle(const std::vector<VfTarget>& vfs);
  Result<void> Bind(const std::vector<VfTarget>& vfs);
  Result<void> SetMac(const VfTarget& vf);
  Result<void> AwaitDriver(const VfTarget& vf);
  Result<void> SetMtu(const VfTarget& vf);
  // Sets the mark with the state before the first interrupted run.
  Result<void> Mark();
  // For an undo. The mark of an interrupted run stays.
  Result<void> Unmark();
  // Adds the drivers that VFs must be given by name to have the same one again.
  [[nodiscard]] std::vector<VfTarget> WithDriversKept(std::vector<VfTarget> vfs) const;
  [[nodiscard]] bool MustBeNamed(const std::string& driver) const;
  // Called before a step. Returns whether the step must be skipped.
  bool CutShort();
  // What restores the earlier VFs. Asks the PF for their MACs.
  Result<std::vector<VfTarget>> Before(const std::vector<VfActual>& vfs);
  [[nodiscard]] Result<void> RefuseOtherOrder(const std::vector<PciAddress>& made) const;
  Result<void> LockNew(const std::vector<PciAddress>& made);
  [[nodiscard]] Result<PciAddress> AddressOf(int vf) const;
  [[nodiscard]] bool KernelBinds() const { return pf_.autoprobe.value_or(true); }
  [[nodiscard]] std::string VfName(int vf) const;

  const Root& root_;
  RouteApi& host_;
  VfControl& control_;
  const PfPlan& plan_;
  const PfActual& pf_;
  Deadline deadline_;
  Deadline driver_deadline_;
  ApplyWatch watch_;
  bool undoing_ = false;  // an undo is not stopped
  bool cut_short_ = false;
  std::set<std::string> locked_;
  std::vector<attachment::DeviceLocks> locks_;
};

}  // namespace railhead::provision

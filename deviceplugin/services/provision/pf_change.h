// Carries out one PF's plan.
//
// VFs are made with autoprobe off, get their MACs, and are bound one after the other in the
// order of their index, for three reasons: a driver reads the MAC that the PF was told when
// it binds; kernel drivers would otherwise be probed in parallel (PROBE_PREFER_ASYNCHRONOUS
// in drivers/base/dd.c), while names of netdevs and RDMA devices (mlx5_N: the lowest that is
// free, alloc_name in drivers/infiniband/core/device.c) are given in the order of binding,
// and shall be the same on every node; and no kernel driver touches a VF that is meant
// for another one.
//
// Until the VFs are bound a failure takes everything back: the count, MACs and drivers of
// before. What fails from there on (a driver that does not take a VF) is left: the VFs
// that are well serve. A stop is heard between two VFs from there on, and leaves the mark
// (MarkUnderWay) by which the next run begins again.
// Ownership: borrows all; holds the device locks of VFs that it made until it is gone. The
// caller holds the locks of the PF and its VFs of before. Threads: as Kernel.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "cni/attachment/acquire.h"
#include "deviceplugin/services/provision/pf_plan.h"
#include "deviceplugin/services/provision/pf_state.h"
#include "deviceplugin/services/provision/provisioner.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/undo_stack.h"
#include "netns/kernel.h"

namespace railhead::provision {

class PfChange {
 public:
  // `deadline`: for interfaces to appear. Drivers get less: kDriverLimit.
  PfChange(const Root& root, RouteApi& host, VfControl& control, const PfPlan& plan, Deadline deadline,
           ApplyWatch watch = {});

  // Does the steps; whether the PF is then as planned is for the caller to look.
  Result<void> Run();

 private:
  // The kernel offers a VF to the drivers that are there before a write to drivers_probe returns
  // (device_attach in drivers/base/dd.c); only one whose module is being loaded, or that waits for
  // another device, takes it later.
  static constexpr std::chrono::seconds kDriverLimit{10};

  Result<void> ChangePf(UndoStack& undo);
  Result<void> Replace(UndoStack& undo);
  Result<void> Change(UndoStack& undo);
  // Removes the VFs that are there and makes `vfs`, without drivers.
  Result<void> Make(const std::vector<VfTarget>& vfs);
  // Drivers, and what can be set only with them. Goes on after an error, and returns the first.
  Result<void> Settle(const std::vector<VfTarget>& vfs);
  Result<void> Bind(const std::vector<VfTarget>& vfs);
  Result<void> SetMac(const VfTarget& vf);
  Result<void> AwaitDriver(const VfTarget& vf);
  Result<void> SetMtu(const VfTarget& vf);
  // The mark with what was there before the first run that was interrupted.
  Result<void> Mark();
  // For an undo: of an interrupted run's PF the mark stays.
  Result<void> Unmark();
  // The drivers that VFs have to be given by name so that they have the same one again.
  [[nodiscard]] std::vector<VfTarget> WithDriversKept(std::vector<VfTarget> vfs) const;
  [[nodiscard]] bool MustBeNamed(const std::string& driver) const;
  // Before something that is still to be done: whether it is left undone.
  bool CutShort();
  // What brings the VFs of before back; asks the PF for their MACs.
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
  bool undoing_ = false;  // that is not stopped
  bool cut_short_ = false;
  std::set<std::string> locked_;
  std::vector<attachment::DeviceLocks> locks_;
};

}  // namespace railhead::provision

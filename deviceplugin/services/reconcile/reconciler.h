// The reconciler: makes up for every DEL that never came.
//
// One pass reads the node's journal, files, soft RoCE devices and address store. It ends what has lost its
// owner.
//
//   - Attachments whose ADD was killed, whose network namespace is gone, or whose pod kubelet has removed and
//     in whose namespace nothing runs. They are restored, as by DEL.
//
//   - Journal entries of an earlier boot, and files of killed writers in the folders of the state.
//
//   - Held devices, CDI specs and NCCL configuration files without an entry.
//
//   - Soft RoCE devices that Railhead made and that came back to the host with their VF.
//
//   - Remains of a pod on a device that has been idle for a minute. The device is reset
//     (cni/attachment/reset.h), so that the next tenant's ADD need not do it.
//
//   - Addresses of an earlier boot, and of unknown containers.
//
// A live pod's things are never touched. Before it ends anything, the pass checks it again under the lock
// that an ADD or DEL would hold. If another process holds that lock, the pass goes on without it. An entry
// that cannot be read is reported, never guessed at, and blocks only its devices. Every step can be
// interrupted: the next pass, DEL or ADD completes it.
//
// It does not log: the report has every action. A pass that finds nothing to do takes no lock (but the
// address store's, for a moment) and dumps nothing from the kernel.
// Threads: one.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "cni/state/journal.h"
#include "deviceplugin/services/reconcile/reconcile_pass.h"
#include "deviceplugin/services/reconcile/reconcile_report.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::reconcile {

// For one pass by hand or by a test: it waits longer, and needs no second pass.
ReconcileOptions SinglePass();

class Reconciler {
 public:
  using Clock = std::chrono::steady_clock;

  // `kernel` must outlive it.
  Reconciler(Root root, Kernel& kernel, ReconcileOptions options = {})
      : root_(std::move(root)), kernel_(kernel), options_(options) {}

  // After `stop` it ends before its next step.
  ReconcileReport Run(Clock::time_point now = Clock::now(), const std::stop_token& stop = {});
  // The last pass left an attachment that has ended, because a process has its devices locked: a running ADD
  // or DEL, or the IPAM plugin that a killed one has left.
  [[nodiscard]] bool IsUnfinished() const { return unfinished_; }

 private:
  void ReadAddresses(ReconcilePass& pass);
  void ReadConflictSources(ReconcilePass& pass);

  Root root_;
  Kernel& kernel_;
  const ReconcileOptions options_;
  bool unfinished_ = false;
  bool earlier_boots_ = true;                                       // addresses of theirs may be held
  std::chrono::milliseconds conflicts_read_until_ = BoottimeNow();  // when the last one was
  std::optional<std::uint64_t> events_known_;   // number of the last one; nullopt: no pass yet
  std::map<AttachmentKey, GonePod> pods_gone_;  // in the last pass
  std::map<std::string, IdleDevice> idle_;      // in the last pass
};

}  // namespace railhead::reconcile

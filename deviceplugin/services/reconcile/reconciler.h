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
// Threads: Run() in one thread at a time; Stop() from any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cni/attachment/acquire.h"
#include "cni/state/attach_log.h"
#include "cni/state/conflict_log.h"
#include "cni/state/journal.h"
#include "cni/state/tenants.h"
#include "deviceplugin/services/reconcile/address_owners.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"
#include "netns/kernel.h"

namespace railhead::reconcile {

struct ReconcileOptions {
  // Whether passes follow each other. A single one cannot see that a pod stays gone.
  bool repeated = true;
  // How long a pod has to be gone, in three passes, before its NICs are restored. If the machine stood still
  // between two passes, both may see the same moment of a sandbox without a process yet.
  std::chrono::seconds pod_gone{60};
  // How old an address without owner has to be: an ADD may still be at work.
  std::chrono::seconds address_age{600};
  // How long a device has to be idle, seen in two passes, before it is reset for the next tenant.
  std::chrono::seconds idle{60};
  // How long to wait for a device that a dying namespace has not returned yet.
  std::chrono::milliseconds restore_timeout{5000};
};

struct ReconcilePass;

// A pod that kubelet does not know and that has no process.
struct GonePod {
  std::chrono::steady_clock::time_point since;
  int passes = 0;  // consecutive passes that saw it so
};

// A device that no pod has, as a pass saw it.
struct IdleDevice {
  Tenant last;
  std::chrono::steady_clock::time_point since;
  bool cannot_be_reset = false;  // an ADD decides about the consequence
};

// For one pass by hand or by a test: it waits longer, and needs no second pass.
ReconcileOptions SinglePass();

struct ReconcileAction {
  std::string what;    // "attachment", "cdi-spec", "address", ...
  std::string name;    // which one
  std::string reason;  // why it must be ended
  std::optional<Error> error;

  static void List(auto& f) {
    f("what", &ReconcileAction::what);
    f("name", &ReconcileAction::name);
    f("reason", &ReconcileAction::reason);
    f.Part(&ReconcileAction::error, [](auto& part) {
      part("error", &Error::message);
      part.Output("code", [](const Error& one) { return NameOf(one.code); });
      part("hint", &Error::hint, kSparseField);
    });
  }
};

struct ReconcileReport {
  std::size_t attachments = 0;  // of this boot, when the pass began
  std::size_t unreadable = 0;   // entries of the journal
  std::size_t displaced = 0;    // devices under substitute names at the end of the pass
  bool unfinished = false;      // an ended attachment is left to a pass soon
  std::vector<ReconcileAction> actions;
  // nullopt: they could not be read. The actions have the error.
  std::optional<AddressFacts> addresses;
  // By sources that ADDs ignored since the pass before.
  std::vector<ConflictSource> conflict_sources;

  [[nodiscard]] bool Failed() const;

  static void List(auto& f) {
    f("attachments", &ReconcileReport::attachments);
    f("actions", &ReconcileReport::actions);
  }
};

class Reconciler {
 public:
  using Clock = std::chrono::steady_clock;

  // `kernel` must outlive it.
  Reconciler(Root root, Kernel& kernel, ReconcileOptions options = {})
      : root_(std::move(root)), kernel_(kernel), options_(options) {}

  ReconcileReport Run(Clock::time_point now = Clock::now());
  // The last pass left an attachment that has ended, because a process has its devices locked: a running ADD
  // or DEL, or the IPAM plugin that a killed one has left.
  [[nodiscard]] bool IsUnfinished() const { return unfinished_; }
  // A running pass ends before its next step, later ones at once.
  void Stop() { stopped_ = true; }

 private:
  void ReadAddresses(ReconcilePass& pass);
  void ReadConflictSources(ReconcilePass& pass);

  Root root_;
  Kernel& kernel_;
  const ReconcileOptions options_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> unfinished_{false};
  bool earlier_boots_ = true;                                       // addresses of theirs may be held
  std::chrono::milliseconds conflicts_read_until_ = BoottimeNow();  // when the last one was
  std::optional<std::uint64_t> events_known_;   // number of the last one; nullopt: no pass yet
  std::map<AttachmentKey, GonePod> pods_gone_;  // in the last pass
  std::map<std::string, IdleDevice> idle_;      // in the last pass
};

// What the steps of one pass of the reconciler share (internal to deviceplugin).
// Threads: as Reconciler::Run.

struct ReconcilePass {
  const Root& root;
  Kernel& kernel;
  const Journal& journal;
  const ReconcileOptions& options;
  const std::atomic<bool>& stopped;
  ReconcileReport& report;

  // `done`: whether the step ended something. If another process was faster, it did not, and the report gets
  // no line.
  void Add(std::string what, std::string name, std::string reason, const Result<bool>& done) {
    if (done && !*done) return;
    ReconcileAction action{std::move(what), std::move(name), std::move(reason), std::nullopt};
    if (!done) action.error = done.error();
    report.actions.push_back(std::move(action));
  }
};

// nullopt: an ADD or DEL, or the IPAM plugin of one, holds one of them.
inline Result<std::optional<attachment::DeviceLocks>> TryLock(const Root& root,
                                                              const std::set<std::string>& devices) {
  auto locks = attachment::DeviceLocks::Acquire(root, devices, std::chrono::milliseconds(0));
  if (locks) return std::optional<attachment::DeviceLocks>(std::move(*locks));
  if (locks.error().code == ErrorCode::kTimeout) return std::nullopt;
  return Fail(locks.error());
}

// The names in a directory. If it cannot be listed, the report gets an error (of the kind `what`), and the
// result is empty.
std::vector<std::string> NamesIn(ReconcilePass& pass, const char* what, const std::string& directory);

// The attachments of `scan` that have ended. `pods_gone`: which pods were gone in the last pass, and since
// when; updated.
void ReconcileAttachments(ReconcilePass& pass, const JournalScan& scan, Reconciler::Clock::time_point now,
                          std::map<AttachmentKey, GonePod>& pods_gone);

// Files without an entry.
void ReconcileFiles(ReconcilePass& pass, const JournalScan& scan);
// Temporary files and empty folders of sandboxes, in all folders of the state, and sockets.
void ReconcilePartialFiles(ReconcilePass& pass);
// Devices whose own names are free again.
void ReconcileNames(ReconcilePass& pass);
// Idle devices: they are reset before another tenant comes. `idle`: the devices that were idle in the last
// pass, with their last tenants; updated.
void ReconcileTenants(ReconcilePass& pass, const JournalScan& scan, Reconciler::Clock::time_point now,
                      std::map<std::string, IdleDevice>& idle);
void ReconcileSoftRoce(ReconcilePass& pass, const JournalScan& scan);
// `earlier_boots`: whether to release the addresses of earlier boots, too; false when that is done.
void ReconcileAddresses(ReconcilePass& pass, const JournalScan& scan, bool& earlier_boots);
// Notes this node's part of each rail, so that the reuse delay of what it has gained counts from a change of
// the fabric and not from the next ADD (ipam/store/rail_part.h).
void ReconcileParts(ReconcilePass& pass);

// How long attachments took, phase by phase, in figures.
// Threads: pure functions.

// In milliseconds. Percentiles by the nearest rank, so that each is a time that was measured.
struct TimingFigures {
  std::size_t count = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;

  static void List(auto& f) {
    f("count", &TimingFigures::count);
    f("p50", &TimingFigures::p50);
    f("p90", &TimingFigures::p90);
    f("p99", &TimingFigures::p99);
    f("max", &TimingFigures::max);
  }
};

// Of the attachments that succeeded.
struct TimingsReport {
  std::size_t attached = 0;
  std::size_t failed = 0;
  std::optional<TimingFigures> total;
  std::vector<std::pair<std::string, TimingFigures>> phases;  // in the order in which they come first

  static void List(auto& f) {
    f("attached", &TimingsReport::attached);
    f("failed", &TimingsReport::failed);
    f("totalMs", &TimingsReport::total, kNullField);
    f("phasesMs", &TimingsReport::phases);
  }
};

TimingsReport ReportTimings(const std::vector<AttachTiming>& timings);

// Drift: a running pod's NIC differs from its NCCL configuration.
//
// NCCL's processes read nccl.conf once. Later an address is removed and added again, and gets another GID
// index; a port goes down; or another tool moves a device. New connections then fail or use another NIC,
// without a reason in any log. A check compares each finished attachment that has an NCCL configuration with
// the kernel's present state. It covers interface, addresses, port, GID index, uverbs node, CDI spec and
// nccl.conf (cni/attachment/verify.h). It repairs nothing: a change that is right for one process is wrong
// for another that runs already.
//
// A difference is checked again under the device's locks: a running ADD or DEL does not count as drift.
// Ownership: borrows the kernel. Threads: Check() in one at a time; Stop() from any.

struct DriftReport {
  std::size_t watched = 0;                       // attachments with an NCCL configuration
  std::map<AttachmentKey, std::string> drifted;  // with the differences as text
  std::map<AttachmentKey, std::string> began;    // new ones among them since the last check
  std::vector<AttachmentKey> over;               // they match again, or are gone
  std::vector<Error> problems;                   // attachments that could not be checked
};

class DriftWatch {
 public:
  DriftWatch(Root root, Kernel& kernel) : root_(std::move(root)), kernel_(kernel) {}

  DriftReport Check();
  // A running check ends before its next attachment; later ones end at once.
  void Stop() { stopped_ = true; }

 private:
  // "" when nothing differs, or an ADD or DEL holds the locks.
  [[nodiscard]] Result<std::string> DriftOf(const Journal& journal, const JournalEntry& entry);
  [[nodiscard]] Result<std::string> Differences(const JournalEntry& entry);

  Root root_;
  Kernel& kernel_;
  std::atomic<bool> stopped_{false};
  std::map<AttachmentKey, std::string> known_;
};

}  // namespace railhead::reconcile

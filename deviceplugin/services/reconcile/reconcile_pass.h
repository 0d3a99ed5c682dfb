// ReconcilePass: what the steps of one pass of the reconciler share, and the steps (internal to this folder).
// Threads: as Reconciler::Run.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "cni/attachment/device_locks.h"
#include "cni/state/journal.h"
#include "cni/state/tenants.h"
#include "deviceplugin/services/reconcile/reconcile_report.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
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

struct ReconcilePass {
  const Root& root;
  Kernel& kernel;
  const Journal& journal;
  const ReconcileOptions& options;
  const std::stop_token& stop;
  ReconcileReport& report;

  [[nodiscard]] bool Stopped() const { return stop.stop_requested(); }

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
void ReconcileAttachments(ReconcilePass& pass, const JournalScan& scan,
                          std::chrono::steady_clock::time_point now,
                          std::map<AttachmentKey, GonePod>& pods_gone);

// Files without an entry.
void ReconcileFiles(ReconcilePass& pass, const JournalScan& scan);
// Temporary files and empty folders of sandboxes, in all folders of the state, and sockets.
void ReconcilePartialFiles(ReconcilePass& pass);
// Devices whose own names are free again.
void ReconcileNames(ReconcilePass& pass);
// Idle devices: they are reset before another tenant comes. `idle`: the devices that were idle in the last
// pass, with their last tenants; updated.
void ReconcileTenants(ReconcilePass& pass, const JournalScan& scan, std::chrono::steady_clock::time_point now,
                      std::map<std::string, IdleDevice>& idle);
void ReconcileSoftRoce(ReconcilePass& pass, const JournalScan& scan);
// `earlier_boots`: whether to release the addresses of earlier boots, too; false when that is done.
void ReconcileAddresses(ReconcilePass& pass, const JournalScan& scan, bool& earlier_boots);
// Notes this node's part of each rail, so that the reuse delay of what it has gained counts from a change of
// the fabric and not from the next ADD (ipam/store/rail_part.h).
void ReconcileParts(ReconcilePass& pass);

}  // namespace railhead::reconcile

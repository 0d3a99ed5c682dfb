// What the steps of one pass of the reconciler share (internal to deviceplugin).
// Threads: as Reconciler::Run.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cni/attachment/device_locks.h"
#include "cni/state/journal.h"
#include "deviceplugin/services/reconcile/reconciler.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

struct ReconcilePass {
  const Root& root;
  Kernel& kernel;
  const Journal& journal;
  const ReconcileOptions& options;
  const std::atomic<bool>& stopped;
  ReconcileReport& report;

  // `done`: whether something was there to be ended. Nothing, when someone else was
  // faster, is not worth a line.
  void Add(std::string what, std::string name, std::string reason, const Result<bool>& done) {
    if (done && !*done) return;
    ReconcileAction action{std::move(what), std::move(name), std::move(reason), std::nullopt};
    if (!done) action.error = done.error();
    report.actions.push_back(std::move(action));
  }
};

// nullopt: an ADD or DEL, or one's IPAM plugin, holds one of them.
inline Result<std::optional<DeviceLocks>> TryLock(const Root& root, const std::set<std::string>& devices) {
  auto locks = DeviceLocks::Acquire(root, devices, std::chrono::milliseconds(0));
  if (locks) return std::optional<DeviceLocks>(std::move(*locks));
  if (locks.error().code == ErrorCode::kTimeout) return std::nullopt;
  return Fail(locks.error());
}

// What is in a directory. One that cannot be listed is reported (of the kind `what`), and
// as if empty.
std::vector<std::string> NamesIn(ReconcilePass& pass, const char* what, const std::string& directory);

// The attachments of `scan` that are over. `pods_gone`: which pods were gone in the last
// pass, and since when; updated.
void ReconcileAttachments(ReconcilePass& pass, const JournalScan& scan, Reconciler::Clock::time_point now,
                          std::map<AttachmentKey, Reconciler::Clock::time_point>& pods_gone);

// Files without an entry.
void ReconcileFiles(ReconcilePass& pass, const JournalScan& scan);
// Temporary files and sockets of railheadd's own.
void ReconcileHalfWritten(ReconcilePass& pass);
// Devices whose own names are free again.
void ReconcileNames(ReconcilePass& pass);
// Devices that are idle: they are reset before another tenant comes. `idle`: who had those last that were
// idle in the last pass; updated.
void ReconcileTenants(ReconcilePass& pass, const JournalScan& scan, Reconciler::Clock::time_point now,
                      std::map<std::string, IdleDevice>& idle);
void ReconcileSoftRoce(ReconcilePass& pass, const JournalScan& scan);
// `earlier_boots`: whether those of earlier boots are to be released too; false when that
// is done.
void ReconcileAddresses(ReconcilePass& pass, const JournalScan& scan, bool& earlier_boots);

}  // namespace railhead

#include "deviceplugin/services/reconcile/reconciler.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "deviceplugin/services/reconcile/address_facts.h"
#include "netns/base/state_folder.h"

namespace railhead::reconcile {

ReconcileOptions SinglePass() {
  ReconcileOptions options;
  options.repeated = false;
  options.restore_timeout = std::chrono::seconds(30);
  return options;
}

bool ReconcileReport::Failed() const {
  return std::ranges::any_of(actions, [](const ReconcileAction& action) { return action.error.has_value(); });
}

ReconcileReport Reconciler::Run(Clock::time_point now, const std::stop_token& stop) {
  ReconcileReport report;
  unfinished_ = false;
  const Journal journal(root_);
  ReconcilePass pass{root_, kernel_, journal, options_, stop, report};
  // Check it before removing anything: a folder may lead elsewhere.
  if (const auto safe = CheckStateFolders(root_); !safe) {
    pass.Add("state-folder", "", "is not safe", Fail(safe.error()));
    return report;
  }
  auto scan = journal.Scan();
  if (!scan) {
    pass.Add("journal", "", "cannot be read", Fail(scan.error()));
    return report;
  }
  report.attachments = scan->entries.size();
  report.unreadable = scan->unreadable.size();
  for (const auto& entry : scan->unreadable)
    pass.Add("journal", entry.path, "cannot be read", Fail(entry.error));
  ReconcileAttachments(pass, *scan, now, pods_gone_);
  unfinished_ = report.unfinished;
  // Their remains have lost their owner now.
  if (!report.actions.empty()) {
    if (auto again = journal.Scan(); again) scan = std::move(again);
  }
  ReconcileFiles(pass, *scan);
  ReconcileNames(pass);
  ReconcileTenants(pass, *scan, now, idle_);
  ReconcileSoftRoce(pass, *scan);
  ReconcileParts(pass);
  ReconcileAddresses(pass, *scan, earlier_boots_);
  ReadAddresses(pass);
  ReadConflictSources(pass);
  return report;
}

void Reconciler::ReadConflictSources(ReconcilePass& pass) {
  auto conflict_sources = ListConflictSources(root_, conflicts_read_until_);
  if (!conflict_sources)
    return pass.Add("address", "", "address conflicts cannot be read", Fail(conflict_sources.error()));
  for (const ConflictSource& one : *conflict_sources)
    conflicts_read_until_ = std::max(conflicts_read_until_, one.latest);
  pass.report.conflict_sources = *std::move(conflict_sources);
}

// An earlier process has reported the events before the first pass, or the counters include them.
void Reconciler::ReadAddresses(ReconcilePass& pass) {
  if (pass.Stopped()) return;
  auto facts = ReadAddressFacts(root_, events_known_.value_or(0));
  if (!facts) return pass.Add("address", "", "cannot be counted", Fail(facts.error()));
  const bool first = !events_known_;
  if (!facts->events.empty()) events_known_ = facts->events.back().number;
  events_known_ = events_known_.value_or(0);
  if (first) facts->events.clear();
  pass.report.addresses = *std::move(facts);
}

}  // namespace railhead::reconcile

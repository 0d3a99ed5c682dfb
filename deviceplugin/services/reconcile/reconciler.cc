#include "deviceplugin/services/reconcile/reconciler.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "cni/attachment/acquire.h"
#include "cni/attachment/differences.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/release.h"
#include "cni/attachment/verify.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"

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

ReconcileReport Reconciler::Run(Clock::time_point now) {
  ReconcileReport report;
  unfinished_ = false;
  const Journal journal(root_);
  ReconcilePass pass{root_, kernel_, journal, options_, stopped_, report};
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
  if (pass.stopped) return;
  auto facts = ReadAddressFacts(root_, events_known_.value_or(0));
  if (!facts) return pass.Add("address", "", "cannot be counted", Fail(facts.error()));
  const bool first = !events_known_;
  if (!facts->events.empty()) events_known_ = facts->events.back().number;
  events_known_ = events_known_.value_or(0);
  if (first) facts->events.clear();
  pass.report.addresses = *std::move(facts);
}

namespace {

using Times = std::vector<std::chrono::microseconds>;

TimingFigures FiguresOf(Times times) {
  std::ranges::sort(times);
  const auto milliseconds = [](std::chrono::microseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  const auto percentile = [&](std::size_t percent) {
    const std::size_t rank = (times.size() * percent + 99) / 100;
    return milliseconds(times[std::max<std::size_t>(rank, 1) - 1]);
  };
  return {times.size(), percentile(50), percentile(90), percentile(99), milliseconds(times.back())};
}

Times& TimesOf(std::vector<std::pair<std::string, Times>>& phases, const std::string& phase) {
  for (auto& [name, times] : phases) {
    if (name == phase) return times;
  }
  return phases.emplace_back(phase, Times{}).second;
}

}  // namespace

TimingsReport ReportTimings(const std::vector<AttachTiming>& timings) {
  TimingsReport report;
  std::vector<std::pair<std::string, Times>> phases;
  Times totals;
  for (const auto& timing : timings) {
    if (!timing.error.empty()) {
      ++report.failed;
      continue;
    }
    std::chrono::microseconds total{0};
    for (const auto& [phase, took] : timing.phases) {
      TimesOf(phases, phase).push_back(took);
      total += took;
    }
    totals.push_back(total);
  }
  report.attached = totals.size();
  if (!totals.empty()) report.total = FiguresOf(totals);
  for (const auto& [name, times] : phases) report.phases.emplace_back(name, FiguresOf(times));
  return report;
}

namespace {

bool HasNcclConfig(const JournalEntry& entry) {
  return entry.phase == Phase::kDone &&
         std::ranges::any_of(entry.devices, [](const auto& device) { return device.InNcclConf(); });
}

}  // namespace

Result<std::string> DriftWatch::Differences(const JournalEntry& entry) {
  auto network = RH_TRY(attachment::PodNetwork::OpenOf(kernel_, entry));
  if (!network) return std::string();  // the pod's network has gone; the remaining parts are restored
  return Join(RH_TRY(FindNcclConfigDrift(root_, kernel_, *network, entry)), "; ");
}

Result<std::string> DriftWatch::DriftOf(const Journal& journal, const JournalEntry& entry) {
  const std::string first = RH_TRY(Differences(entry));
  if (first.empty()) return first;
  const auto locks =
      attachment::DeviceLocks::Acquire(root_, attachment::DevicesOf(entry), std::chrono::milliseconds(0));
  if (!locks) return std::string();
  const auto now = RH_TRY(journal.Find(entry.key));
  return now && HasNcclConfig(*now) ? Differences(*now) : std::string();
}

DriftReport DriftWatch::Check() {
  DriftReport report;
  const Journal journal(root_);
  const auto scan = journal.Scan();
  if (!scan) {
    report.problems.push_back(scan.error());
    return report;
  }
  for (const JournalEntry& entry : scan->entries) {
    if (!HasNcclConfig(entry)) continue;
    if (stopped_) return {};
    ++report.watched;
    auto drift = DriftOf(journal, entry);
    if (!drift) {
      drift.error().message = entry.key.ToString() + ": " + drift.error().message;
      report.problems.push_back(std::move(drift.error()));
    } else if (!drift->empty()) {
      report.drifted[entry.key] = *drift;
    }
  }
  for (const auto& [key, drift] : report.drifted) {
    const auto before = known_.find(key);
    if (before == known_.end() || before->second != drift) report.began[key] = drift;
  }
  for (const auto& [key, drift] : known_) {
    if (!report.drifted.contains(key)) report.over.push_back(key);
  }
  known_ = report.drifted;
  return report;
}

}  // namespace railhead::reconcile

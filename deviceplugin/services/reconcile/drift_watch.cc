#include "deviceplugin/services/reconcile/drift_watch.h"

#include <algorithm>
#include <chrono>

#include "cni/attachment/device_locks.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/verify.h"
#include "netns/base/text.h"

namespace railhead::reconcile {
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
  const auto locks = attachment::DeviceLocks::Acquire(root_, DevicesOf(entry), std::chrono::milliseconds(0));
  if (!locks) return std::string();
  const auto now = RH_TRY(journal.Find(entry.key));
  return now && HasNcclConfig(*now) ? Differences(*now) : std::string();
}

DriftReport DriftWatch::Check(const std::stop_token& stop) {
  DriftReport report;
  const Journal journal(root_);
  const auto scan = journal.Scan();
  if (!scan) {
    report.problems.push_back(scan.error());
    return report;
  }
  for (const JournalEntry& entry : scan->entries) {
    if (!HasNcclConfig(entry)) continue;
    if (stop.stop_requested()) return {};
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

// Writes the reports of the daemon's parts to its log.
// Threads: as Log.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "cni/state/attach_log.h"
#include "cni/state/attach_log_tail.h"
#include "deviceplugin/daemon/node_watcher.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/kubelet/registrar.h"
#include "deviceplugin/services/reconcile/reconciler.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/root.h"

namespace railhead::daemon {

void LogEvent(Log* log, const kubelet::Event& event);
void LogPlan(Log* log, const resources::Plan& plan);
void LogPlanChange(Log* log, const PlanChange& change);
void LogBinding(Log* log, const BindRequest& request, const Result<Bindings>& answer);
void LogHealth(Log* log, const health::HealthTick& tick);

void LogDrift(Log* log, const reconcile::DriftReport& report);

// Logs the reports of reconcile passes. A failure that stays the same is a warning only once.
class ReportLog {
 public:
  explicit ReportLog(Log* log) : log_(log) {}
  void Write(const reconcile::ReconcileReport& report);

 private:
  void LogAddressEvent(const ipam::AddressEvent& event);

  Log* log_;
  std::set<std::string> known_failures_;
};

// AttachCounts: outcomes and durations of ADDs, from the CNI plugin's log of timings.
//
// Counts the lines since the daemon started; reads the log on each request for the page.
// Threads: thread-safe. Lines that cannot be read now are counted later.

class AttachCounts {
 public:
  explicit AttachCounts(const Root& root) : tail_(root) {}

  void Append(Exposition* page);

 private:
  // The log names the phases. This limit keeps the page short.
  static constexpr std::size_t kMostPhases = 64;

  void Count(const AttachTiming& timing);

  std::mutex mutex_;
  AttachLogTail tail_;
  std::uint64_t attached_ = 0;
  std::uint64_t failed_ = 0;
  LatencyHistogram duration_;  // of those that attached
  std::map<std::string, std::chrono::microseconds> phases_;
};

}  // namespace railhead::daemon

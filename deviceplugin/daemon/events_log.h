// What the daemon's parts report, as lines of its log.
// Threads: as Log.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "cni/attachment/announce_repeat.h"
#include "cni/state/attach_log.h"
#include "deviceplugin/daemon/advertiser.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/kubelet/registrar.h"
#include "deviceplugin/services/reconcile/reconciler.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/files.h"

namespace railhead::daemon {

void LogEvent(Log* log, const kubelet::Event& event);
void LogPlan(Log* log, const resources::Plan& plan);
void LogPlanChange(Log* log, const PlanChange& change);
void LogBinding(Log* log, const BindRequest& request, const Result<Bindings>& answer);
void LogHealth(Log* log, const health::HealthTick& tick);

void LogDrift(Log* log, const reconcile::DriftReport& report);
void LogRepeated(Log* log, const AttachmentKey& key, const Result<attachment::Repeated>& repeated);

// Of one pass after the other. A failure that stays the same is a warning only once.
class ReportLog {
 public:
  explicit ReportLog(Log* log) : log_(log) {}
  void Write(const reconcile::ReconcileReport& report);

 private:
  void LogAddressEvent(const ipam::AddressEvent& event);

  Log* log_;
  std::set<std::string> known_failures_;
};

// How ADDs end and what they spend their time with, out of the CNI plugin's log of timings.
//
// Counts what was logged since the daemon started; the log is read when somebody asks.
// Threads: thread-safe. What cannot be read is counted when it can.

class AttachCounts {
 public:
  explicit AttachCounts(const Root& root) : tail_(root) {}

  void Append(Exposition* page);

 private:
  // The log says what phases there are; a page stays short whatever it says.
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

// What the daemon's parts report, as lines of its log.
// Threads: as Log.
#pragma once

#include <set>
#include <string>

#include "cni/attachment/announce_repeat.h"
#include "deviceplugin/daemon/advertiser.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/kubelet/registrar.h"
#include "deviceplugin/services/reconcile/drift_watch.h"
#include "deviceplugin/services/reconcile/reconciler.h"
#include "deviceplugin/support/log/log.h"

namespace railhead {

void LogEvent(Log* log, const Event& event);
void LogPlan(Log* log, const Plan& plan);
void LogPlanChange(Log* log, const PlanChange& change);
void LogBinding(Log* log, const BindRequest& request, const Result<Bindings>& answer);
void LogHealth(Log* log, const HealthTick& tick);

void LogDrift(Log* log, const DriftReport& report);
void LogRepeated(Log* log, const AttachmentKey& key, const Result<Repeated>& repeated);

// Of one pass after the other. A failure that stays the same is a warning only once.
class ReportLog {
 public:
  explicit ReportLog(Log* log) : log_(log) {}
  void Write(const ReconcileReport& report);

 private:
  void LogAddressEvent(const AddressEvent& event);

  Log* log_;
  std::set<std::string> known_failures_;
};

}  // namespace railhead

#include "deviceplugin/services/health/health_log.h"

#include <string>
#include <utility>
#include <vector>

#include "netns/base/text.h"

namespace railhead::health {

void LogHealth(Log* log, const HealthTick& tick) {
  for (const Error& problem : tick.problems) log->Warning("health is unknown", problem);
  for (const HealthChange& change : tick.changes) {
    std::vector<std::string> reasons;
    reasons.reserve(change.reasons.size());
    for (const HealthReason& reason : change.reasons) {
      std::string text(NameOf(reason.rule));
      reasons.push_back(text.append(" of ").append(reason.device).append(": ").append(reason.text));
    }
    const Log::Fields fields = {{"device", change.device}, {"because", Join(reasons, "; ")}};
    if (change.healthy) {
      log->Info("healthy again", fields);
    } else if (change.flipped) {
      log->Warning("unhealthy", fields);
    } else {
      log->Info("unhealthy for other reasons", fields);
    }
  }
}

}  // namespace railhead::health

// LogHealth: logs what a health check found. Threads: as Log.
#pragma once

#include "deviceplugin/services/health/watch.h"
#include "deviceplugin/support/log/log.h"

namespace railhead::health {

void LogHealth(Log* log, const HealthTick& tick);

}  // namespace railhead::health

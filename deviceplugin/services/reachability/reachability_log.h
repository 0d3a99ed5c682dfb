// LogReachability: logs the differences between two reports. Rails, gateways and pods have a line each, peers
// one line per rail. Threads: as Log.
#pragma once

#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/support/log/log.h"

namespace railhead::reachability {

void LogReachability(Log* log, const ReachabilityReport& before, const ReachabilityReport& now);

}  // namespace railhead::reachability

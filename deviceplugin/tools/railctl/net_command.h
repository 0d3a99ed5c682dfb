// What one node reaches, as tables for people.
// Threads: one.
#pragma once

#include "deviceplugin/services/reachability/reach_report.h"

namespace railhead::railctl {

// Rails; then the peers and pods that are not well, or all of them.
void PrintReach(const ReachReport& report, bool all);

// Something that should be reached is not. What is not known is no fault.
bool HasFault(const ReachReport& report);

}  // namespace railhead::railctl

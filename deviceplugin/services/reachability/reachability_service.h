// What the rails reach, as railheadd tells it: log and metrics.
// Threads: as Log and Exposition.
#pragma once

#include <memory>

#include "deviceplugin/services/reachability/rail_verdicts.h"
#include "deviceplugin/services/reachability/reach_report.h"
#include "deviceplugin/services/reachability/reach_watch.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

// `rails` and `log` are borrowed.
Result<std::unique_ptr<ReachWatch>> StartReachWatch(const Root& root, Kernel& kernel,
                                                    const std::string& keys_path, RailVerdicts* rails,
                                                    Log* log);

// What is different from before: rails, gateways and pods each, peers in one line for a rail.
void LogReach(Log* log, const ReachReport& before, const ReachReport& now);

// Of the peers that are not well at most these are named for each rail, the worst first: Prometheus keeps a
// series for every pair of nodes that it is told.
inline constexpr std::size_t kMostBadPeers = 16;

void AppendReach(Exposition* page, const ReachReport& report);

}  // namespace railhead

// RegisterReachability: the metrics of a reachability report. Threads: as MetricRegistry.
#pragma once

#include <cstddef>

#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/published.h"

namespace railhead::reachability {

// The number of faulty peers with a metric, per rail, worst first: Prometheus keeps a series for every pair
// of nodes.
inline constexpr std::size_t kMostBadPeers = 16;

// `report` outlives `metrics`.
void RegisterReachability(MetricRegistry& metrics, const Published<ReachabilityReport>& report);

}  // namespace railhead::reachability

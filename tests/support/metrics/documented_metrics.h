// The metrics in docs/reference/metrics.md, to compare with the served ones.
#pragma once

#include <map>
#include <string>

#include "tests/support/metrics/metrics_parser.h"

namespace railhead::testing {

enum class MetricsPageName { kDaemon, kNics };  // /metrics, /metrics/nics

// Reads its tables: | `name` | type | labels | what |. Those after "## NICs" are of the second page.
std::map<std::string, MetricFamily> DocumentedMetrics(MetricsPageName page);

// Expects that both have the same families, with type and help. Ignores the page's families whose names begin
// with `but`.
void ExpectDocumented(const MetricsText& page, MetricsPageName name, const std::string& but = {});

}  // namespace railhead::testing

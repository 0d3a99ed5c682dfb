// What docs/reference/metrics.md says of the metrics, to compare with what is there.
#pragma once

#include <map>
#include <string>

#include "tests/support/metrics/metrics_parser.h"

namespace railhead::testing {

enum class MetricsPageName { kDaemon, kNics };  // /metrics, /metrics/nics

// Its tables: | `name` | type | labels | what |. Those behind "## NICs" are of the second page.
std::map<std::string, MetricFamily> DocumentedMetrics(MetricsPageName page);

// Expects that both have the same families, with type and help; of the page's, those of `but` aside.
void ExpectDocumented(const MetricsText& page, MetricsPageName name, const std::string& but = {});

}  // namespace railhead::testing

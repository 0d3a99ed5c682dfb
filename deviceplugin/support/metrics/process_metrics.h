// The metrics that every Prometheus client has about its own process, under the usual names. Source:
// prometheus.io/docs/instrumenting/writing_clientlibs (process metrics); proc(5). Threads: thread-safe.
// Values that cannot be read are omitted.
#pragma once

#include "deviceplugin/support/metrics/exposition.h"

namespace railhead {

void AppendProcessMetrics(Exposition* page);

}  // namespace railhead

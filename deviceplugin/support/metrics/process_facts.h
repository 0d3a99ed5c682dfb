// What every Prometheus client tells of its own process, under the names that all use.
// Source: prometheus.io/docs/instrumenting/writing_clientlibs (process metrics); proc(5).
// Threads: thread-safe. What cannot be read is left out.
#pragma once

#include "deviceplugin/support/metrics/exposition.h"

namespace railhead {

void AppendProcessMetrics(Exposition* page);

}  // namespace railhead

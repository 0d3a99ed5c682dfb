// How long attachments took, phase by phase, in figures.
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "cni/state/attach_log.h"

namespace railhead {

// Count and p50, p90, p99 and maximum in milliseconds of each phase and of the whole, of
// the attachments that succeeded. Percentiles by the nearest rank, so that each is a
// time that was measured.
std::string TimingsAsJson(const std::vector<AttachTiming>& timings);

}  // namespace railhead

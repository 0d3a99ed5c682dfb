// The page at /metrics/nics: what every NIC counts, by device, rail and pod.
//
// A page of its own, since it is as long as the node has NICs in pods, and takes as long as their drivers do.
// What bounds it: PFs of pools, devices in pods, and the counters of their drivers. Threads: pure functions.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/node/health/device_health.h"
#include "deviceplugin/services/nic_metrics/collector.h"
#include "deviceplugin/support/metrics/exposition.h"

namespace railhead::nic_metrics {

struct NicPageSources {
  NicReport report;
  std::vector<health::DeviceHealth> health;
  std::set<AttachmentKey> drifted;  // NICs differ from their NCCL configuration
  std::chrono::nanoseconds took{0};
};

std::string NicPage(const NicPageSources& sources, ExpositionFormat format);

}  // namespace railhead::nic_metrics

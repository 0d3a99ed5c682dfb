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
#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/nic_metrics/collector.h"
#include "deviceplugin/support/metrics/exposition.h"

namespace railhead {

struct NicPageSources {
  NicReport report;
  std::vector<DeviceHealth> health;
  std::set<AttachmentKey> drifted;  // no longer as NCCL was told
  std::chrono::nanoseconds took{0};
  bool sriov_names = false;  // also as sriov-network-metrics-exporter names them
};

std::string NicPage(const NicPageSources& sources, ExpositionFormat format);

}  // namespace railhead

// The page at /metrics: everything that railheadd counts, as docs/monitoring.md lists it.
// Labels are resources, rules, kinds and outcomes, of which a node has a few; never a device,
// a pod or an error's text.
// Threads: thread-safe, as what it reads is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/daemon/activity.h"
#include "deviceplugin/daemon/leasing.h"
#include "deviceplugin/health/observation.h"
#include "deviceplugin/kubelet/activity.h"
#include "deviceplugin/metrics/exposition.h"
#include "netns/base/root.h"

namespace railhead {

struct MetricsSources {
  Root root;
  const Activity* activity;
  std::vector<std::shared_ptr<const ResourceActivity>> resources;
  std::vector<DeviceHealth> health;
  const LeasingLoop* leasing = nullptr;  // null: addresses are not leased
};

std::string MetricsPage(const MetricsSources& sources, ExpositionFormat format);

}  // namespace railhead

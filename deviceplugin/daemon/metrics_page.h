// The page at /metrics: everything that railheadd counts, as docs/monitoring.md lists it.
// Labels are resources, rules, kinds, outcomes, and rails with where they hang, of which a node has a few;
// never a device, a pod or an error's text. Those are on a page of their own: deviceplugin/nics/nic_page.h.
// Threads: thread-safe, as what it reads is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/connectivity/reach_report.h"
#include "deviceplugin/daemon/activity.h"
#include "deviceplugin/daemon/attach_counts.h"
#include "deviceplugin/daemon/budget.h"
#include "deviceplugin/daemon/isolation.h"
#include "deviceplugin/daemon/leasing.h"
#include "deviceplugin/health/observation.h"
#include "deviceplugin/kubelet/activity.h"
#include "deviceplugin/leaves/leaf_report.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/root.h"

namespace railhead {

struct MetricsSources {
  Root root;
  const Activity* activity;
  std::vector<std::shared_ptr<const ResourceActivity>> resources;
  std::vector<DeviceHealth> health;
  const LeasingLoop* leasing = nullptr;  // null: addresses are not leased
  AttachCounts* attaches = nullptr;
  LeafReport leaves;
  ReachReport reach;
  const Isolation* isolation = nullptr;
  const Budget* budget = nullptr;
};

std::string MetricsPage(const MetricsSources& sources, ExpositionFormat format);

}  // namespace railhead

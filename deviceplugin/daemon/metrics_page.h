// The page at /metrics: everything that railheadd counts, as docs/monitoring.md lists it.
// Labels are resources, rules, kinds, outcomes, and rails with where they hang, of which a node has a few;
// never a device, a pod or an error's text. Those are on a page of their own:
// deviceplugin/services/nic_metrics/nic_page.h. Threads: thread-safe, as what it reads is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/daemon/activity.h"
#include "deviceplugin/daemon/budget.h"
#include "deviceplugin/daemon/events_log.h"
#include "deviceplugin/services/address_leasing/leasing_service.h"
#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/kubelet/advertisement.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/services/node_status/node_status_service.h"
#include "deviceplugin/services/reachability/reach_report.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/files.h"

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

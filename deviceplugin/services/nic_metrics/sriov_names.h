// The same figures under the names of sriov-network-metrics-exporter, for dashboards and rules that know
// these: sriov_vf_rx_bytes and its siblings by pciAddr, pf, vf and numa_node; sriov_kubepoddevice, to join
// them with pods.
//
// Counters there are named without _total, which OpenMetrics does not allow: they have no type here.
// Source: sriov-network-metrics-exporter's README and collectors (v1.1).
// Threads: pure function.
#pragma once

#include "deviceplugin/services/nic_metrics/collector.h"
#include "deviceplugin/support/metrics/exposition.h"

namespace railhead {

// All VFs of `report`, also those in no pod.
void AppendSriovNames(Exposition* page, const NicReport& report);

}  // namespace railhead

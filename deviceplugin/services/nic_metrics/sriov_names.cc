#include "deviceplugin/services/nic_metrics/sriov_names.h"

#include <cstdint>
#include <string>
#include <vector>

namespace railhead {
namespace {

struct Family {
  const char* name;
  const char* help;
  std::uint64_t (*value)(const Traffic&);
};

constexpr Family kFamilies[] = {
    {"sriov_vf_rx_bytes", "Received bytes per virtual function", [](const Traffic& t) { return t.rx_bytes; }},
    {"sriov_vf_tx_bytes", "Transmitted bytes per virtual function",
     [](const Traffic& t) { return t.tx_bytes; }},
    {"sriov_vf_rx_packets", "Received packets per virtual function",
     [](const Traffic& t) { return t.rx_packets; }},
    {"sriov_vf_tx_packets", "Transmitted packets per virtual function",
     [](const Traffic& t) { return t.tx_packets; }},
    {"sriov_vf_rx_dropped", "Dropped packets on receipt per virtual function",
     [](const Traffic& t) { return t.rx_dropped.value_or(0); }},
    {"sriov_vf_tx_dropped", "Dropped packets on transmit per virtual function",
     [](const Traffic& t) { return t.tx_dropped.value_or(0); }},
    {"sriov_vf_rx_multicast", "Received multicast packets per virtual function",
     [](const Traffic& t) { return t.rx_multicast; }},
    {"sriov_vf_rx_broadcast", "Received broadcast packets per virtual function",
     [](const Traffic& t) { return t.rx_broadcast.value_or(0); }},
};

// The exporter's figures are the PF's; where its driver does not count, the VF's own are better than zeros.
Traffic TrafficOf(const NicSample& nic) {
  return nic.by_pf ? *nic.by_pf : nic.traffic.value_or(Traffic{});
}

}  // namespace

void AppendSriovNames(Exposition* page, const NicReport& report) {
  struct Vf {
    LabelText labels;
    Traffic traffic;
  };
  std::vector<Vf> vfs;
  for (const NicSample& nic : report.nics) {
    if (!nic.vf) continue;
    // The exporter says "-1", as sysfs does, where there is no NUMA.
    const std::string numa = std::to_string(nic.numa_node.value_or(-1));
    const std::string index = std::to_string(*nic.vf);
    vfs.push_back(
        {LabelText().With({{"numa_node", numa}, {"pciAddr", nic.device}, {"pf", nic.pf}, {"vf", index}}),
         TrafficOf(nic)});
  }
  for (const Family& family : kFamilies) {
    page->Begin(MetricType::kUnknown, family.name, family.help);
    for (const Vf& vf : vfs) page->Sample(vf.labels, family.value(vf.traffic));
  }
  page->Begin(MetricType::kUnknown, "sriov_kubepoddevice", "Always 1; which pod has the device");
  for (const NicSample& nic : report.nics) {
    if (!nic.owner || nic.owner->pod.empty()) continue;
    page->Sample(LabelText().With({{"dev_type", nic.resource},
                                   {"namespace", nic.owner->pod_namespace},
                                   {"pciAddr", nic.device},
                                   {"pod", nic.owner->pod}}),
                 std::uint64_t{1});
  }
}

}  // namespace railhead

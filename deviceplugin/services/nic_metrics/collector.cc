#include "deviceplugin/services/nic_metrics/collector.h"

#include <algorithm>

#include "cni/attachment/pod_network.h"
#include "deviceplugin/services/nic_metrics/counter_source.h"
#include "deviceplugin/services/nic_metrics/nic_sample.h"
#include "deviceplugin/services/nic_metrics/nic_subjects.h"
#include "deviceplugin/services/nic_metrics/priority_counters.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/pci.h"

namespace railhead::nic_metrics {
namespace {

void StoreLink(const PfTraffic& link, NicSample* nic) {
  nic->traffic = link.traffic;
  nic->carrier = link.carrier;
  nic->carrier_changes = link.carrier_changes;
}

bool IsNothing(const Traffic& traffic) {
  return traffic.rx_packets == 0 && traffic.tx_packets == 0 && traffic.rx_bytes == 0 && traffic.tx_bytes == 0;
}

// Whether any VF has counted anything. If the PF's driver has no ndo_get_vf_stats, the kernel sends zeros for
// all of its VFs. They must not appear as the counters of a busy VF.
bool Counts(const std::vector<VfTraffic>& vfs) {
  return std::ranges::any_of(vfs, [](const VfTraffic& vf) { return !IsNothing(vf.traffic); });
}

// "speed" is in Mbit/s. Without a link it is -1, or sysfs has no value.
std::optional<std::uint64_t> SpeedOf(const Root& root, const std::string& netdev) {
  const auto text = ReadNetdevAttribute(root, netdev, "speed");
  if (!text || !*text) return std::nullopt;
  const auto megabits = ParseInt(**text);
  if (!megabits || *megabits <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(*megabits) * 125'000;
}

void Note(Result<void> done, const std::string& what, std::vector<Error>* problems) {
  if (!done) problems->push_back(Wrap(std::move(done.error()), what));
}

}  // namespace

Result<void> NicCollector::OpenHost() {
  if (host_) return {};
  host_ns_ = RH_TRY(kernel_.HostNetns());
  host_ = RH_TRY(open_(*host_ns_));
  return {};
}

Result<NicCollector::RdmaDevices> NicCollector::RdmaDevicesOf(const NetNs& ns) {
  RdmaDevices devices;
  auto rdma = kernel_.OpenRdma(ns);
  if (!rdma && rdma.error().code == ErrorCode::kUnsupported) return devices;
  if (!rdma) return Fail(std::move(rdma.error()));
  for (RdmaDevice& device : RH_TRY((*rdma)->ListDevices())) devices.emplace(device.name, std::move(device));
  return devices;
}

Result<void> NicCollector::ReadRdma(CounterSource* source, const RdmaDevices& devices, NicSample* nic) {
  const auto device = devices.find(nic->rdma_device);
  if (device == devices.end()) return {};
  nic->rdma_seen = true;
  nic->rdma_active = device->second.active;
  if (auto counters = RH_TRY(source->Rdma(device->second.index))) nic->rdma = *std::move(counters);
  return {};
}

Result<void> NicCollector::ReadPort(NicSample* port, Nics* nics) {
  const auto link = RH_TRY(host_->Link(port->pf));
  if (!link) return {};
  StoreLink(*link, port);
  if (link->carrier) port->speed = SpeedOf(root_, port->pf);
  if (Counts(link->vfs)) {
    std::map<int, const Traffic*> by_index;
    for (const VfTraffic& vf : link->vfs) by_index.emplace(vf.vf, &vf.traffic);
    for (auto& [device, nic] : *nics) {
      if (!nic.vf || nic.pf != port->pf) continue;
      const auto counted = by_index.find(*nic.vf);
      if (counted != by_index.end()) nic.by_pf = *counted->second;
    }
  }
  const auto& names = PriorityCounterNames(port->driver);
  if (!names.empty())
    port->priorities = PriorityCountsOf(port->driver, RH_TRY(host_->Driver(port->pf, names)));
  return {};
}

Result<void> NicCollector::ReadPod(const JournalEntry& entry, Nics* nics) {
  const auto ns = RH_TRY(attachment::OpenPodOf(kernel_, entry));
  if (!ns) return {};
  const auto source = RH_TRY(open_(*ns));
  std::optional<RdmaDevices> devices;
  for (const AttachedDevice& link : entry.devices) {
    const auto found = nics->find(link.device);
    if (found == nics->end()) continue;
    NicSample& nic = found->second;
    if (!link.before.user_space) {
      if (const auto traffic = RH_TRY(source->Link(link.pod_name))) StoreLink(*traffic, &nic);
    }
    // Exclusive mode: only its own namespace sees the device.
    if (nic.rdma_device.empty() || !link.rdma.moved) continue;
    if (!devices) devices = RH_TRY(RdmaDevicesOf(*ns));
    RH_TRY(ReadRdma(source.get(), *devices, &nic));
  }
  return {};
}

void NicCollector::Count(const JournalCache::Entries& attachments, Nics* nics, std::vector<Error>* problems) {
  if (auto opened = OpenHost(); !opened) {
    problems->push_back(std::move(opened.error()));
    return;
  }
  RdmaDevices devices;
  if (auto listed = RdmaDevicesOf(*host_ns_)) {
    devices = *std::move(listed);
  } else {
    problems->push_back(std::move(listed.error()));
  }
  for (auto& [device, nic] : *nics) {
    if (!nic.vf && !nic.owner) Note(ReadPort(&nic, nics), "counters of PF " + nic.pf, problems);
    Note(ReadRdma(host_.get(), devices, &nic), "counters of " + nic.rdma_device, problems);
  }
  for (const auto& entry : attachments)
    Note(ReadPod(*entry, nics), "counters of " + entry->key.ToString(), problems);
}

NicReport NicCollector::Collect(const Advertisement& advertisement) {
  NicReport report;
  JournalCache::View journal;
  if (auto read = journal_.Read()) {
    journal = *std::move(read);
  } else {
    report.problems.push_back(std::move(read.error()));
  }
  for (const UnreadableEntry& entry : journal.unreadable) report.problems.push_back(entry.error);
  Nics nics = NicSubjects(root_, advertisement, journal.entries);
  if (open_ != nullptr) Count(journal.entries, &nics, &report.problems);
  report.nics.reserve(nics.size());
  for (auto& [device, nic] : nics) report.nics.push_back(std::move(nic));
  return report;
}

}  // namespace railhead::nic_metrics

#include "deviceplugin/services/nic_metrics/nic_page.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "deviceplugin/services/nic_metrics/nic_sample.h"
#include "deviceplugin/services/nic_metrics/priority_counters.h"

namespace railhead::nic_metrics {
namespace {

using Type = MetricType;
using Count = std::optional<std::uint64_t>;

struct Nic {
  const NicSample* sample;
  LabelText labels;
};
using Nics = std::vector<Nic>;

LabelText LabelsOf(const NicSample& nic) {
  const std::string vf = nic.vf ? std::to_string(*nic.vf) : "";
  const std::string numa = nic.numa_node ? std::to_string(*nic.numa_node) : "";
  LabelText own = LabelText().With(
      {{"device", nic.device}, {"pf", nic.pf}, {"vf", vf}, {"rail", nic.rail}, {"numa_node", numa}});
  if (!nic.owner) return own;
  return own.With({{"namespace", nic.owner->pod_namespace},
                   {"pod", nic.owner->pod},
                   {"interface", nic.owner->interface}});
}

// A sample for each NIC for which `value` returns one.
template <typename Value>
void Append(Exposition* page, const Nics& nics, Type type, const char* name, const char* help, Value value) {
  page->Begin(type, name, help);
  for (const Nic& nic : nics) {
    if (const auto known = value(*nic.sample)) page->Sample(nic.labels, *known);
  }
}

std::optional<std::uint64_t> Flag(bool flag) {
  return flag ? 1 : 0;
}

struct TrafficFamily {
  const char* name;  // behind railhead_nic_ or railhead_vf_
  const char* what;
  Count (*value)(const Traffic&);
};

constexpr TrafficFamily kTraffic[] = {
    {"receive_bytes", "Bytes received", [](const Traffic& t) { return Count(t.rx_bytes); }},
    {"transmit_bytes", "Bytes sent", [](const Traffic& t) { return Count(t.tx_bytes); }},
    {"receive_packets", "Packets received", [](const Traffic& t) { return Count(t.rx_packets); }},
    {"transmit_packets", "Packets sent", [](const Traffic& t) { return Count(t.tx_packets); }},
    {"receive_multicast_packets", "Multicast packets received",
     [](const Traffic& t) { return Count(t.rx_multicast); }},
    {"receive_broadcast_packets", "Broadcast packets received",
     [](const Traffic& t) { return t.rx_broadcast; }},
    {"receive_drops", "Packets received and dropped", [](const Traffic& t) { return t.rx_dropped; }},
    {"transmit_drops", "Packets to send that were dropped", [](const Traffic& t) { return t.tx_dropped; }},
    {"receive_errors", "Bad packets received", [](const Traffic& t) { return t.rx_errors; }},
    {"transmit_errors", "Packets that could not be sent", [](const Traffic& t) { return t.tx_errors; }},
};

// `which`: one of the two views of a NIC's traffic. A family that no NIC has is left out.
void AppendTraffic(Exposition* page, const Nics& nics, const std::string& prefix, const std::string& by,
                   std::optional<Traffic> NicSample::*which) {
  for (const TrafficFamily& family : kTraffic) {
    const auto value = [&](const NicSample& nic) {
      const auto& traffic = nic.*which;
      return traffic ? family.value(*traffic) : Count();
    };
    if (std::ranges::none_of(nics, [&](const Nic& nic) { return value(*nic.sample).has_value(); })) continue;
    Append(page, nics, Type::kCounter, (prefix + family.name).c_str(), (family.what + by).c_str(), value);
  }
}

void AppendInfo(Exposition* page, const Nics& nics) {
  page->Begin(Type::kGauge, "railhead_nic_info", "Always 1; the NIC's driver and RDMA device");
  for (const Nic& nic : nics) {
    page->Sample(nic.labels.With({{"driver", nic.sample->driver}, {"rdma_device", nic.sample->rdma_device}}),
                 std::uint64_t{1});
  }
}

void AppendLink(Exposition* page, const Nics& nics) {
  Append(page, nics, Type::kGauge, "railhead_nic_carrier", "1 while the link is up",
         [](const NicSample& nic) { return nic.traffic ? Flag(nic.carrier) : std::nullopt; });
  Append(page, nics, Type::kGauge, "railhead_nic_speed_bytes",
         "Speed of a PF's link in bytes per second; absent without a link",
         [](const NicSample& nic) { return nic.speed; });
  Append(page, nics, Type::kCounter, "railhead_nic_carrier_changes", "Times that the link came or went",
         [](const NicSample& nic) { return nic.traffic ? Count(nic.carrier_changes) : std::nullopt; });
}

struct PriorityFamily {
  PriorityCounter counter;
  const char* name;
  const char* help;
};

constexpr PriorityFamily kPriority[] = {
    {PriorityCounter::kPauseFrames, "railhead_nic_pause_frames",
     "Pause frames of a PF's port, by priority (PFC), or of the whole port where the label is absent"},
    {PriorityCounter::kPauseMicroseconds, "railhead_nic_pause_seconds",
     "Time for which pause frames stopped a PF's port (receive) or its peer (transmit)"},
    {PriorityCounter::kBytes, "railhead_nic_priority_bytes", "Bytes of a PF's port, by priority"},
    {PriorityCounter::kDiscards, "railhead_nic_priority_discards",
     "Packets that a PF's port received and discarded for want of room, by priority"},
};

void AppendPriorities(Exposition* page, const Nics& nics) {
  for (const PriorityFamily& family : kPriority) {
    page->Begin(Type::kCounter, family.name, family.help);
    for (const Nic& nic : nics) {
      for (const PriorityCount& count : nic.sample->priorities) {
        if (count.counter != family.counter) continue;
        const std::string priority = count.priority ? std::to_string(*count.priority) : "";
        const LabelText labels =
            nic.labels.With({{"direction", count.transmit ? "transmit" : "receive"}, {"priority", priority}});
        if (family.counter == PriorityCounter::kPauseMicroseconds) {
          page->Sample(labels, static_cast<double>(count.value) / 1e6);
        } else {
          page->Sample(labels, count.value);
        }
      }
    }
  }
}

// Replaces the characters that a metric's name may not have. Most counters' names need no change.
std::string MetricName(const std::string& counter) {
  std::string name = "railhead_rdma_";
  for (const char c : counter) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name.push_back(fits ? c : '_');
  }
  return name;
}

void AppendRdma(Exposition* page, const Nics& nics) {
  page->Begin(Type::kGauge, "railhead_rdma_port_active", "1 while port 1 of the RDMA device is ACTIVE");
  // By family, as the format requires. One counter's family has the samples of all devices.
  std::map<std::string, std::vector<std::pair<const Nic*, std::uint64_t>>> families;
  std::map<std::string, std::string> helps;
  std::map<const Nic*, LabelText> labels;
  for (const Nic& nic : nics) {
    if (!nic.sample->rdma_seen) continue;
    const LabelText& own =
        labels.emplace(&nic, nic.labels.With({{"rdma_device", nic.sample->rdma_device}})).first->second;
    page->Sample(own, *Flag(nic.sample->rdma_active));
    for (const auto& [counter, value] : nic.sample->rdma) {
      const std::string name = MetricName(counter);
      helps.try_emplace(name, "The RDMA driver's counter " + counter);
      auto& samples = families[name];
      // Two counters whose names differ only in replaced characters: the first one counts.
      if (samples.empty() || samples.back().first != &nic) samples.emplace_back(&nic, value);
    }
  }
  for (const auto& [name, samples] : families) {
    page->Begin(Type::kCounter, name, helps[name]);
    for (const auto& [nic, value] : samples) page->Sample(labels[nic], value);
  }
}

void AppendHealth(Exposition* page, const Nics& nics, const std::vector<health::DeviceHealth>& health) {
  std::map<std::string_view, const health::DeviceHealth*> by_id;
  for (const health::DeviceHealth& device : health) by_id.emplace(device.id, &device);
  const auto find = [&](const NicSample& nic) -> const health::DeviceHealth* {
    const auto found = by_id.find(nic.device);
    return found == by_id.end() ? nullptr : found->second;
  };
  Append(page, nics, Type::kGauge, "railhead_nic_healthy", "0 while a rule of health has hold of the NIC",
         [&](const NicSample& nic) {
           const health::DeviceHealth* known = find(nic);
           return known != nullptr ? Flag(known->healthy) : std::nullopt;
         });
  page->Begin(Type::kGauge, "railhead_nic_health_reason",
              "1 for each rule of health that has hold of the NIC");
  for (const Nic& nic : nics) {
    const health::DeviceHealth* known = find(*nic.sample);
    if (known == nullptr) continue;
    std::set<health::HealthRule> rules;
    for (const health::HealthReason& reason : known->reasons) rules.insert(reason.rule);
    for (const health::HealthRule rule : rules)
      page->Sample(nic.labels.With({{"rule", NameOf(rule)}}), std::uint64_t{1});
  }
}

}  // namespace

std::string NicPage(const NicPageSources& sources, ExpositionFormat format) {
  Exposition page(format);
  Nics nics;
  nics.reserve(sources.report.nics.size());
  for (const NicSample& nic : sources.report.nics) {
    if (!nic.vf || nic.owner) nics.push_back({&nic, LabelsOf(nic)});
  }
  AppendInfo(&page, nics);
  AppendLink(&page, nics);
  AppendTraffic(&page, nics, "railhead_nic_", ", as the NIC's own network device counts",
                &NicSample::traffic);
  AppendTraffic(&page, nics, "railhead_vf_", ", as the PF's driver counts for a VF that a pod has",
                &NicSample::by_pf);
  AppendPriorities(&page, nics);
  AppendRdma(&page, nics);
  AppendHealth(&page, nics, sources.health);
  Append(&page, nics, Type::kGauge, "railhead_nic_nccl_config_drifted",
         "1 while the NIC's attachment differs from its NCCL configuration", [&](const NicSample& nic) {
           return nic.owner && nic.owner->nccl_config ? Flag(sources.drifted.contains(nic.owner->attachment))
                                                      : std::nullopt;
         });
  page.Begin(Type::kGauge, "railhead_nic_collect_seconds", "Time that reading all this took");
  page.Sample(LabelText(), std::chrono::duration<double>(sources.took).count());
  page.Begin(Type::kGauge, "railhead_nic_collect_problems", "What could not be read this time");
  page.Sample(LabelText(), std::uint64_t{sources.report.problems.size()});
  return std::move(page).Finish();
}

}  // namespace railhead::nic_metrics

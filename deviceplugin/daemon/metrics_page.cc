#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "cni/state/paths.h"
#include "deviceplugin/daemon/daemon.h"
#include "deviceplugin/services/lldp/lldp_service.h"
#include "deviceplugin/services/reachability/reachability_service.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/files.h"

namespace railhead::daemon {
namespace {

using Type = MetricType;
using Resources = std::vector<std::shared_ptr<const kubelet::ResourceActivity>>;

// The devices of one pool, by health and use.
struct Devices {
  // [unhealthy][in use]
  std::array<std::array<std::uint64_t, 2>, 2> count{};

  [[nodiscard]] std::uint64_t InUse() const { return count[0][1] + count[1][1]; }
  [[nodiscard]] std::uint64_t Free() const { return count[0][0] + count[1][0]; }
};

Devices Count(const resources::ResourcePool& pool, const kubelet::Advertisement& advertisement,
              const std::set<std::string>& in_pods) {
  Devices devices;
  const auto lost = advertisement.lost.find(pool.spec.resource);
  if (lost != advertisement.lost.end()) devices.count[1][1] = lost->second.size();
  const std::set<std::string>* unhealthy = advertisement.unhealthy.get();
  for (const resources::PoolMember& member : pool.members) {
    const std::string& id = member.function.id;
    // A slot is in use when its paired device is.
    const bool in_use = in_pods.contains(pool.spec.late ? member.function.address.ToString() : id);
    ++devices.count.at(unhealthy != nullptr && unhealthy->contains(id) ? 1 : 0).at(in_use ? 1 : 0);
  }
  return devices;
}

void AppendBuild(Exposition* page) {
  page->Begin(Type::kGauge, "railhead_build_info", "Always 1; the version of railheadd");
  page->Sample({{"version", RAILHEAD_VERSION}}, std::uint64_t{1});
}

void AppendDevices(Exposition* page, const MetricsSources& sources) {
  const kubelet::Advertisement advertisement = sources.activity->advertisement();
  const auto in_pods = Journal(sources.root).HeldDevices();
  std::vector<std::pair<const resources::ResourcePool*, Devices>> pools;
  pools.reserve(advertisement.pools.size());
  for (const auto& pool : advertisement.pools)
    pools.emplace_back(pool.get(), Count(*pool, advertisement, in_pods));
  page->Begin(Type::kGauge, "railhead_devices",
              "Devices advertised to kubelet, by their health and whether a pod has them");
  for (const auto& [pool, devices] : pools) {
    for (const bool unhealthy : {false, true}) {
      for (const bool used : {false, true}) {
        page->Sample({{"resource", pool->spec.resource},
                      {"health", unhealthy ? "unhealthy" : "healthy"},
                      {"use", used ? "in_use" : "free"}},
                     devices.count.at(unhealthy ? 1 : 0).at(used ? 1 : 0));
      }
    }
  }
  page->Begin(Type::kGauge, "railhead_slots",
              "Slots of resources with late binding, by whether a pod's NIC is bound to them");
  for (const auto& [pool, devices] : pools) {
    if (!pool->spec.late) continue;
    page->Sample({{"resource", pool->spec.resource}, {"state", "free"}}, devices.Free());
    page->Sample({{"resource", pool->spec.resource}, {"state", "bound"}}, devices.InUse());
  }
}

using NamedCalls = std::pair<const char*, const kubelet::CallActivity*>;
std::array<NamedCalls, 3> CallsOf(const kubelet::ResourceActivity& resource) {
  return {NamedCalls{"Allocate", &resource.allocate},
          NamedCalls{"GetPreferredAllocation", &resource.preferred},
          NamedCalls{"PreStartContainer", &resource.pre_start}};
}

void AppendCalls(Exposition* page, const Resources& resources) {
  page->Begin(Type::kCounter, "railhead_kubelet_calls", "Calls of kubelet, by outcome");
  for (const auto& resource : resources) {
    for (const auto& [name, calls] : CallsOf(*resource)) {
      page->Sample({{"resource", resource->resource}, {"call", name}, {"outcome", "answered"}},
                   calls->answered.value());
      page->Sample({{"resource", resource->resource}, {"call", name}, {"outcome", "refused"}},
                   calls->refused.value());
    }
  }
  page->Begin(Type::kHistogram, "railhead_kubelet_call_duration_seconds",
              "Time from the arrival of a call of kubelet to its answer, durable writes included");
  for (const auto& resource : resources) {
    for (const auto& [name, calls] : CallsOf(*resource))
      page->Sample({{"resource", resource->resource}, {"call", name}}, calls->duration);
  }
}

template <typename Value>
void AppendPerResource(Exposition* page, const Resources& resources, Type type, const char* name,
                       const char* help, Value value) {
  page->Begin(type, name, help);
  for (const auto& resource : resources)
    page->Sample({{"resource", resource->resource}}, static_cast<std::uint64_t>(value(*resource)));
}

void AppendRegistration(Exposition* page, const Resources& resources) {
  AppendPerResource(page, resources, Type::kGauge, "railhead_registered",
                    "1 while the resource is registered with the running kubelet",
                    [](const kubelet::ResourceActivity& one) { return one.registered ? 1 : 0; });
  AppendPerResource(page, resources, Type::kGauge, "railhead_standby",
                    "1 while a newer railheadd serves the resource",
                    [](const kubelet::ResourceActivity& one) { return one.standby ? 1 : 0; });
  AppendPerResource(page, resources, Type::kCounter, "railhead_registrations", "Registrations with kubelet",
                    [](const kubelet::ResourceActivity& one) { return one.registrations.value(); });
  AppendPerResource(page, resources, Type::kCounter, "railhead_registration_failures",
                    "Registrations that kubelet refused or did not answer",
                    [](const kubelet::ResourceActivity& one) { return one.registration_failures.value(); });
  AppendPerResource(page, resources, Type::kGauge, "railhead_listandwatch_streams",
                    "Open ListAndWatch streams; normally 1",
                    [](const kubelet::ResourceActivity& one) { return one.streams.load(); });
  AppendPerResource(page, resources, Type::kCounter, "railhead_cdi_spec_rewrites",
                    "CDI specs that PreStartContainer found missing or changed and wrote again",
                    [](const kubelet::ResourceActivity& one) { return one.spec_rewrites.value(); });
  AppendPerResource(page, resources, Type::kCounter, "railhead_cdi_spec_read_timeouts",
                    "Calls of PreStartContainer for which no container runtime read the CDI specs in time",
                    [](const kubelet::ResourceActivity& one) { return one.spec_read_timeouts.value(); });
  AppendPerResource(page, resources, Type::kCounter, "railhead_listandwatch_updates",
                    "Device lists sent to kubelet",
                    [](const kubelet::ResourceActivity& one) { return one.list_updates.value(); });
}

void AppendNode(Exposition* page, const NodeActivity& node) {
  page->Begin(Type::kCounter, "railhead_discovery_triggers",
              "Events that caused a discovery of the node, by source");
  page->Sample({{"source", "hardware"}}, node.hardware_events.value());
  page->Sample({{"source", "files"}}, node.file_events.value());
  page->Sample({{"source", "signal"}}, node.requests.value());
  page->Begin(Type::kGauge, "railhead_uevents_connected",
              "1 while railheadd gets the kernel's device events; 0: discovery runs every ten seconds");
  page->Sample({}, std::uint64_t{node.uevents_connected ? 1U : 0U});
  page->Begin(Type::kCounter, "railhead_discovery_runs", "Discoveries of hardware and configuration");
  page->Sample({}, node.discoveries_done.value());
  page->Begin(Type::kCounter, "railhead_discovery_failures",
              "Discoveries that failed: the configuration is invalid or the node could not be read");
  page->Sample({}, node.discovery_failures.value());
  page->Begin(Type::kGauge, "railhead_config_ok",
              "1 when the latest discovery succeeded; 0: the last valid configuration stays in use");
  page->Sample({}, std::uint64_t{node.config_ok ? 1U : 0U});
  page->Begin(Type::kGauge, "railhead_config_last_good_timestamp_seconds",
              "Time of the last discovery that succeeded, in seconds since 1970");
  page->Sample({}, node.last_good.seconds());
}

void AppendBinding(Exposition* page, const Activity& activity) {
  page->Begin(Type::kCounter, "railhead_bind_requests",
              "Requests of ADD to bind slots, by outcome: bound, or the code of the error");
  page->Sample({{"outcome", "bound"}}, activity.bound.value());
  for (std::size_t code = 0; code < Activity::kErrorCodes; ++code) {
    const std::uint64_t count = activity.not_bound.at(code).value();
    if (count != 0) page->Sample({{"outcome", NameOf(static_cast<ErrorCode>(code))}}, count);
  }
  page->Begin(Type::kHistogram, "railhead_bind_duration_seconds",
              "Time to answer a request of ADD to bind slots");
  page->Sample({}, activity.bind_duration);
}

void AppendReconciler(Exposition* page, const Activity& activity) {
  page->Begin(Type::kCounter, "railhead_reconcile_passes", "Reconcile passes over NICs, addresses and files");
  page->Sample({}, activity.passes.value());
  page->Begin(Type::kGauge, "railhead_reconcile_last_pass_timestamp_seconds",
              "Time of the end of the latest pass, in seconds since 1970");
  page->Sample({}, activity.last_pass.seconds());
  page->Begin(Type::kCounter, "railhead_reconcile_actions",
              "Items without a pod that passes cleaned up, by kind and outcome");
  for (const auto& [kind, count] : activity.reconcile_actions()) {
    page->Sample({{"kind", kind.what}, {"outcome", kind.failed ? "failed" : "done"}}, count);
  }
  page->Begin(Type::kGauge, "railhead_attachments", "Attachments of pods when the latest pass began");
  page->Sample({}, static_cast<std::uint64_t>(activity.attachments));
  page->Begin(
      Type::kGauge, "railhead_unreadable_journal_entries",
      "Journal entries that could not be read when the latest pass began; their devices are Unhealthy");
  page->Sample({}, static_cast<std::uint64_t>(activity.unreadable_entries));
  page->Begin(Type::kGauge, "railhead_displaced_devices",
              "Devices under a substitute name on the host at the end of the latest pass");
  page->Sample({}, static_cast<std::uint64_t>(activity.displaced_devices));
}

void AppendNcclConfigs(Exposition* page, const Activity& activity) {
  page->Begin(Type::kGauge, "railhead_nccl_configs",
              "Attachments of running pods with an NCCL configuration, by whether their NICs still match it");
  page->Sample({{"state", "matching"}}, static_cast<std::uint64_t>(activity.matching));
  page->Sample({{"state", "drifted"}}, static_cast<std::uint64_t>(activity.drifted));
  page->Begin(Type::kCounter, "railhead_nccl_config_drifts",
              "Attachments whose NICs began to differ from their NCCL configuration");
  page->Sample({}, activity.drifts.value());
}

void AppendAddresses(Exposition* page, const Activity& activity) {
  const std::vector<reconcile::PoolFacts> pools = activity.address_pools();
  page->Begin(Type::kGauge, "railhead_ipam_addresses",
              "Addresses of a rail's subnet that are not free on this node, by state");
  for (const reconcile::PoolFacts& pool : pools) {
    page->Sample({{"pool", pool.pool}, {"state", "held"}}, pool.held);
    page->Sample({{"pool", pool.pool}, {"state", "cooling_down"}}, pool.cooling_down);
    page->Sample({{"pool", pool.pool}, {"state", "quarantined"}}, pool.quarantined);
  }
  const auto counter = [&](const char* name, const char* help, std::uint64_t ipam::PoolCounters::*which) {
    page->Begin(Type::kCounter, name, help);
    for (const reconcile::PoolFacts& pool : pools) page->Sample({{"pool", pool.pool}}, pool.counters.*which);
  };
  counter("railhead_ipam_allocations", "Addresses allocated to pods", &ipam::PoolCounters::allocated);
  counter("railhead_ipam_releases", "Addresses released; their reuse delay began",
          &ipam::PoolCounters::released);
  counter("railhead_ipam_early_reuses",
          "Addresses allocated before their reuse delay was over, because no other was free",
          &ipam::PoolCounters::early_reuses);
  counter("railhead_ipam_exhaustions", "ADDs refused because no address was free",
          &ipam::PoolCounters::exhausted);
  counter("railhead_ipam_quarantines", "Addresses put into quarantine, because another machine uses them",
          &ipam::PoolCounters::quarantined);
  page->Begin(Type::kCounter, "railhead_ipam_conflicts_ignored",
              "Answers to address probes that ADDs ignored, because one host answers for many addresses or "
              "too many hosts answer");
  page->Sample({}, activity.ignored_answers.value());
}

void AppendHealth(Exposition* page, const MetricsSources& sources) {
  page->Begin(Type::kCounter, "railhead_health_changes",
              "Changes of health rules, by the state that they changed a device to");
  for (const health::HealthRule rule : health::AllHealthRules()) {
    const auto index = static_cast<std::size_t>(rule);
    page->Sample({{"rule", NameOf(rule)}, {"to", "unhealthy"}}, sources.activity->fired.at(index).value());
    page->Sample({{"rule", NameOf(rule)}, {"to", "healthy"}}, sources.activity->cleared.at(index).value());
  }
  std::array<std::uint64_t, health::kHealthRuleCount> held{};
  for (const health::DeviceHealth& device : sources.health) {
    std::set<health::HealthRule> rules;
    for (const health::HealthReason& reason : device.reasons) rules.insert(reason.rule);
    for (const health::HealthRule rule : rules) ++held.at(static_cast<std::size_t>(rule));
  }
  page->Begin(Type::kGauge, "railhead_unhealthy_devices",
              "PFs and VFs for which a health rule is active, in a pool or not");
  for (const health::HealthRule rule : health::AllHealthRules())
    page->Sample({{"rule", NameOf(rule)}}, held.at(static_cast<std::size_t>(rule)));
}

void AppendThreads(Exposition* page, const Heartbeats& beats) {
  page->Begin(Type::kGauge, "railhead_thread_alive", "1 while this thread of railheadd makes progress");
  const auto thread = [&](const char* name, const auto& beat) {
    page->Sample({{"thread", name}}, std::uint64_t{beat.IsLate() ? 0U : 1U});
  };
  thread("node_watcher", beats.node_watcher);
  thread("registrar", beats.registrar);
  thread("reconciler", beats.reconciler);
  thread("binder", beats.binder);
}

}  // namespace

std::string MetricsPage(const MetricsSources& sources, ExpositionFormat format) {
  Exposition page(format);
  AppendBuild(&page);
  AppendDevices(&page, sources);
  AppendCalls(&page, sources.resources);
  AppendRegistration(&page, sources.resources);
  AppendNode(&page, sources.activity->node);
  AppendFollower(&page, sources.follower);
  AppendBinding(&page, *sources.activity);
  AppendReconciler(&page, *sources.activity);
  if (sources.attaches != nullptr) sources.attaches->Append(&page);
  AppendNcclConfigs(&page, *sources.activity);
  AppendAddresses(&page, *sources.activity);
  AppendHealth(&page, sources);
  node_index::AppendNodeIndex(&page, sources.root, sources.claims_index);
  AppendLldpMetrics(&page, sources.lldp_report);
  AppendReachability(&page, sources.reach);
  if (sources.node_status_service != nullptr) sources.node_status_service->Append(&page);
  AppendThreads(&page, sources.activity->heartbeats);
  AppendProcessMetrics(&page);
  return std::move(page).Finish();
}

}  // namespace railhead::daemon

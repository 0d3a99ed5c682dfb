#include "deviceplugin/services/kubelet/resource_metrics.h"

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/services/kubelet/registrar.h"
#include "deviceplugin/services/kubelet/resource_activity.h"

namespace railhead::kubelet {
namespace {

// The devices of one pool, by health and use.
struct Devices {
  // [unhealthy][in use]
  std::array<std::array<std::uint64_t, 2>, 2> count{};

  [[nodiscard]] std::uint64_t InUse() const { return count[0][1] + count[1][1]; }
  [[nodiscard]] std::uint64_t Free() const { return count[0][0] + count[1][0]; }
};

Devices Count(const resources::ResourcePool& pool, const Advertisement& advertisement,
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

struct PoolDevices {
  std::shared_ptr<const resources::ResourcePool> pool;
  Devices devices;
};

std::vector<PoolDevices> CountAll(const Root& root, const std::optional<Advertisement>& advertisement) {
  std::vector<PoolDevices> pools;
  if (!advertisement) return pools;
  const auto in_pods = Journal(root).HeldDevices();
  pools.reserve(advertisement->pools.size());
  for (const auto& pool : advertisement->pools)
    pools.push_back({pool, Count(*pool, *advertisement, in_pods)});
  return pools;
}

using NamedCalls = std::pair<const char*, const CallActivity*>;
std::array<NamedCalls, 3> CallsOf(const ResourceActivity& resource) {
  return {NamedCalls{"Allocate", &resource.allocate},
          NamedCalls{"GetPreferredAllocation", &resource.preferred},
          NamedCalls{"PreStartContainer", &resource.pre_start}};
}

void RegisterCalls(MetricRegistry& metrics, const Registrar& registrar) {
  metrics.Add(MetricType::kCounter, "railhead_kubelet_calls", "Calls of kubelet, by outcome",
              [&registrar](Exposition& page) {
                for (const auto& resource : registrar.Activities()) {
                  for (const auto& [name, calls] : CallsOf(*resource)) {
                    page.Sample({{"resource", resource->resource}, {"call", name}, {"outcome", "answered"}},
                                calls->answered.value());
                    page.Sample({{"resource", resource->resource}, {"call", name}, {"outcome", "refused"}},
                                calls->refused.value());
                  }
                }
              });
  metrics.Add(MetricType::kHistogram, "railhead_kubelet_call_duration_seconds",
              "Time from the arrival of a call of kubelet to its answer, durable writes included",
              [&registrar](Exposition& page) {
                for (const auto& resource : registrar.Activities()) {
                  for (const auto& [name, calls] : CallsOf(*resource))
                    page.Sample({{"resource", resource->resource}, {"call", name}}, calls->duration);
                }
              });
}

}  // namespace

void RegisterResources(MetricRegistry& metrics, const Registrar& registrar) {
  RegisterCalls(metrics, registrar);
  // One sample for each resource.
  const auto add = [&](MetricType type, const char* name, const char* help, auto value) {
    metrics.Add(type, name, help, [&registrar, value](Exposition& page) {
      for (const auto& resource : registrar.Activities())
        page.Sample({{"resource", resource->resource}}, static_cast<std::uint64_t>(value(*resource)));
    });
  };
  using Activity = ResourceActivity;
  add(MetricType::kGauge, "railhead_registered",
      "1 while the resource is registered with the running kubelet",
      [](const Activity& one) { return one.registered ? 1 : 0; });
  add(MetricType::kGauge, "railhead_standby", "1 while a newer railheadd serves the resource",
      [](const Activity& one) { return one.standby ? 1 : 0; });
  add(MetricType::kCounter, "railhead_registrations", "Registrations with kubelet",
      [](const Activity& one) { return one.registrations.value(); });
  add(MetricType::kCounter, "railhead_registration_failures",
      "Registrations that kubelet refused or did not answer",
      [](const Activity& one) { return one.registration_failures.value(); });
  add(MetricType::kGauge, "railhead_listandwatch_streams", "Open ListAndWatch streams; normally 1",
      [](const Activity& one) { return one.streams.load(); });
  add(MetricType::kCounter, "railhead_cdi_spec_rewrites",
      "CDI specs that PreStartContainer found missing or changed and wrote again",
      [](const Activity& one) { return one.spec_rewrites.value(); });
  add(MetricType::kCounter, "railhead_cdi_spec_read_timeouts",
      "Calls of PreStartContainer for which no container runtime read the CDI specs in time",
      [](const Activity& one) { return one.spec_read_timeouts.value(); });
  add(MetricType::kCounter, "railhead_listandwatch_updates", "Device lists sent to kubelet",
      [](const Activity& one) { return one.list_updates.value(); });
}

void RegisterDevices(MetricRegistry& metrics, const Root& root,
                     const Published<std::optional<Advertisement>>& advertisement) {
  metrics.Add(MetricType::kGauge, "railhead_devices",
              "Devices advertised to kubelet, by their health and whether a pod has them",
              [root, &advertisement](Exposition& page) {
                for (const auto& [pool, devices] : CountAll(root, *advertisement.Get())) {
                  for (const bool unhealthy : {false, true}) {
                    for (const bool used : {false, true}) {
                      page.Sample({{"resource", pool->spec.resource},
                                   {"health", unhealthy ? "unhealthy" : "healthy"},
                                   {"use", used ? "in_use" : "free"}},
                                  devices.count.at(unhealthy ? 1 : 0).at(used ? 1 : 0));
                    }
                  }
                }
              });
  metrics.Add(MetricType::kGauge, "railhead_slots",
              "Slots of resources with late binding, by whether a pod's NIC is bound to them",
              [root, &advertisement](Exposition& page) {
                for (const auto& [pool, devices] : CountAll(root, *advertisement.Get())) {
                  if (!pool->spec.late) continue;
                  page.Sample({{"resource", pool->spec.resource}, {"state", "free"}}, devices.Free());
                  page.Sample({{"resource", pool->spec.resource}, {"state", "bound"}}, devices.InUse());
                }
              });
}

}  // namespace railhead::kubelet

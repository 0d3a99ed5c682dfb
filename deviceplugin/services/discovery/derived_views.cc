#include "deviceplugin/services/discovery/derived_views.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "deviceplugin/node/resources/find_allocated.h"
#include "deviceplugin/node/resources/find_lost.h"
#include "deviceplugin/node/resources/slots.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/unready_devices.h"

namespace railhead::discovery {

bool HasLatePool(const NodeSnapshot& node) {
  return std::ranges::any_of(node.pools, [](const auto& pool) { return pool->spec.late; });
}

// Topology is only a reason to prefer a device: without it any device will do.
BindingView ViewOf(const Root& root, const NodeSnapshot& node, const health::HealthWatch& health,
                   const std::set<std::string>& withheld, const topology::AcceleratorIds::UuidLookup& uuids) {
  BindingView view;
  view.pools = node.pools;
  view.unhealthy = withheld;
  for (const auto& pool : node.pools) {
    for (const resources::PoolMember& member : pool->members) {
      if (!health.IsHealthy(member.function.id)) view.unhealthy.insert(member.function.id);
    }
  }
  const auto config = topology::ReadTopologyConfig(root);
  if (!config) return view;
  const auto topology = topology::Topology::Read(root, *node.inventory, *config);
  if (!topology) return view;
  view.topology = *topology;
  view.accelerators =
      std::make_shared<const topology::AcceleratorIds>(IdsOf(root, **topology, *config, uuids));
  return view;
}

Advertisement AdvertisementOf(const Root& root, const NodeSnapshot& node, const health::HealthWatch& health,
                              const std::set<std::string>& withheld) {
  const auto bound = HasLatePool(node) ? resources::ReadBoundSlots(root) : resources::BoundSlots{};
  Advertisement advertisement;
  auto unhealthy = std::make_shared<std::set<std::string>>();
  for (const auto& devices : node.pools) {
    auto pool = devices->spec.late ? SlotPool(*devices, bound) : devices;
    for (const resources::PoolMember& member : pool->members) {
      // A slot has the health of its device.
      const std::string device = devices->spec.late ? member.function.address.ToString() : member.function.id;
      const bool healthy = health.IsHealthy(device);
      if (!healthy || withheld.contains(device)) unhealthy->insert(member.function.id);
    }
    advertisement.pools.push_back(std::move(pool));
  }
  advertisement.unhealthy = std::move(unhealthy);
  advertisement.lost = FindAllocatedAndLost(root, advertisement.pools);
  return advertisement;
}

std::set<std::string> WithheldAtFirst(const Root& root, const NodeSnapshot& node) {
  auto withheld = FindAllocatedUnderOtherNames(root, node.pools);
  auto drained = health::DrainedAmong(root, node.inventory->All());
  health::UnreadyDevices unready(root);
  if (!drained || !unready.Refresh()) {
    for (const inventory::NicFunction& function : node.inventory->All()) withheld.insert(function.id);
    return withheld;
  }
  withheld.merge(*drained);
  for (const auto& [device, reason] : unready.reasons()) withheld.insert(device);
  return withheld;
}

}  // namespace railhead::discovery

#include "deviceplugin/services/address_leasing/lease_plan.h"

#include <utility>

#include "netns/base/files.h"
#include "netns/base/node.h"

namespace railhead {
namespace {

// The firmware's id of the machine: the disk's own (/etc/machine-id) goes with a copy of it, and
// in a container it is the image's. Empty where only root may read it and we are not.
std::string MachineId(const Root& root) {
  const auto id = ReadAttribute(root.Path("/sys/class/dmi/id/product_uuid"));
  return id && *id ? **id : std::string();
}

Result<PoolLayout> LayoutOf(const Rail& rail, std::uint64_t block_size) {
  RangeSpec spec;
  spec.subnet = *rail.subnet;
  spec.gateway = rail.gateway;
  for (const IpRange& range : rail.exclude) spec.exclusions.push_back({range.first, range.last});
  return PoolLayout::Make(RH_TRY(RangeSet::Make(spec)), block_size);
}

}  // namespace

Result<std::optional<LeasePlan>> CheckLeases(const Fabric& fabric, const std::string& fabric_path) {
  LeasePlan plan;
  plan.where = fabric_path + ": /addresses/store";
  plan.store = RH_TRY(ParseLeaseSettings(fabric.address_store, plan.where, fabric.rest_seconds));
  if (plan.store.type == LeaseStoreType::kNode) return std::nullopt;
  plan.settings.times = plan.store.times;
  plan.settings.low_water = plan.store.low_water;
  for (const Rail& rail : fabric.rails) {
    if (!fabric.Leases(rail)) continue;
    plan.settings.pools.push_back(
        RH_TRY_WRAP(LayoutOf(rail, plan.store.block_size), fabric_path + ": rail '" + rail.name + "'"));
  }
  if (plan.settings.pools.empty()) return std::nullopt;
  return plan;
}

Result<std::optional<LeasePlan>> PlanLeases(const Root& root, const std::string& fabric_path) {
  const auto fabric = RH_TRY(ReadFabric(root, fabric_path));
  if (!fabric) return std::nullopt;
  auto plan = RH_TRY(CheckLeases(*fabric, fabric_path));
  if (!plan) return std::nullopt;
  plan->settings.node = RH_TRY(NodeName(root));
  plan->settings.machine = MachineId(root);
  return plan;
}

}  // namespace railhead

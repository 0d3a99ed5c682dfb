#include "deviceplugin/node/resources/fabric_resources.h"

#include <algorithm>
#include <utility>

#include "deviceplugin/node/resources/selector.h"
#include "netns/base/text.h"

namespace railhead::resources {
namespace {

// Place of a PF in the rail's list of alternatives; a PF by position has place 0.
std::size_t PlaceOf(const Rail& rail, const inventory::NicFunction& pf) {
  const auto named = std::ranges::find_if(
      rail.pfs, [&](const std::string& text) { return text == pf.pf_name || ToLower(text) == pf.id; });
  return static_cast<std::size_t>(named - rail.pfs.begin());
}

Result<void> CheckDeviceNodes(const Fabric& fabric, const Pool& pool, std::size_t index) {
  if (pool.device_nodes != DeviceNodeMode::kMount) return {};
  for (const std::string& name : pool.rails) {
    const Rail* rail = fabric.FindRail(name);
    if (rail == nullptr || !rail->soft_roce) continue;
    return Fail(
        ErrorCode::kInvalid,
        "/pools/" + std::to_string(index) + "/deviceNodes: 'mount' does not work with rail " + name +
            ", which is soft RoCE: its device nodes do not exist when kubelet asks for them",
        R"(use "deviceNodes": "cdi" (containerd 1.7 and later with enable_cdi, CRI-O), or hardware RDMA)");
  }
  return {};
}

}  // namespace

std::map<std::string, std::string> PfsOfRails(const Fabric& fabric, const inventory::Inventory& inventory) {
  std::map<std::string, const inventory::NicFunction*> found;
  for (const inventory::NicFunction& function : inventory.functions) {
    if (function.is_vf) continue;
    const Rail* rail = fabric.RailOfPf(function.pf_name, function.id, inventory.rail_pfs);
    if (rail == nullptr) continue;
    const inventory::NicFunction*& best = found[rail->name];
    if (best == nullptr || PlaceOf(*rail, function) < PlaceOf(*rail, *best)) best = &function;
  }
  std::map<std::string, std::string> pfs;
  for (const auto& [rail, function] : found) pfs[rail] = function->id;
  return pfs;
}

Result<FabricResources> ResourcesOfFabric(const Fabric& fabric, const inventory::Inventory& inventory) {
  const auto pfs = PfsOfRails(fabric, inventory);
  FabricResources resources;
  for (std::size_t n = 0; n < fabric.pools.size(); ++n) {
    const Pool& pool = fabric.pools[n];
    RH_TRY(CheckDeviceNodes(fabric, pool, n));
    ResourceSpec spec;
    spec.resource = pool.resource;
    spec.nccl_config = pool.nccl_config.value_or(fabric.nccl_config);
    spec.device_nodes = pool.device_nodes;
    spec.late = pool.late;
    if (pool.device_nodes == DeviceNodeMode::kMount) spec.rdma_nodes = RdmaNodes::kVerbs;
    Selector selector;
    selector.is_vf = pool.device == PoolDevice::kVf;
    for (std::size_t rank = 0; rank < pool.rails.size(); ++rank) {
      const auto found = pfs.find(pool.rails[rank]);
      if (found == pfs.end()) {
        resources.absent_rails.push_back(pool.rails[rank]);
        continue;
      }
      selector.root_devices.push_back({found->second, {}});
      spec.rails[found->second] = static_cast<int>(rank);
      spec.rail_names[found->second] = pool.rails[rank];
    }
    // Without root devices it would select everything.
    if (!selector.root_devices.empty()) spec.selectors.push_back(std::move(selector));
    resources.specs.push_back(std::move(spec));
  }
  auto& absent = resources.absent_rails;
  std::ranges::sort(absent);
  absent.erase(std::unique(absent.begin(), absent.end()), absent.end());
  return resources;
}

}  // namespace railhead::resources

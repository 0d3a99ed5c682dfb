#include "tests/support/daemon/two_rails.h"

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/resources/fabric_resources.h"

namespace railhead::testing {

TwoRails::TwoRails(int vfs) {
  sysfs_.AddPf({.address = kPf0, .netdev = "pf0", .rdma = "mlx5_0", .numa_node = 0});
  sysfs_.AddPf({.address = kPf1, .netdev = "pf1", .rdma = "mlx5_1", .numa_node = 1});
  if (vfs == 0) return;
  vfs0_ = sysfs_.AddVfs(kPf0, vfs, {.rdma = "{pf}_rdma{n}"});
  vfs1_ = sysfs_.AddVfs(kPf1, vfs, {.rdma = "{pf}_rdma{n}"});
}

std::shared_ptr<const inventory::Inventory> TwoRails::Discover(const inventory::HostNetwork& host) const {
  auto inventory = inventory::Discover(root_, host);
  if (!inventory) {
    ADD_FAILURE() << Describe(inventory.error());
    return std::make_shared<inventory::Inventory>();
  }
  return *inventory;
}

std::vector<std::shared_ptr<const resources::ResourcePool>> TwoRails::PoolsOf(const std::string& text) const {
  const auto inventory = Discover();
  const auto fabric = ParseFabric(text, "fabric.json");
  if (!fabric) {
    ADD_FAILURE() << Describe(fabric.error());
    return {};
  }
  const auto resources = resources::ResourcesOfFabric(*fabric, *inventory);
  if (!resources) {
    ADD_FAILURE() << Describe(resources.error());
    return {};
  }
  return BuildPools(resources->specs, *inventory);
}

std::shared_ptr<const resources::ResourcePool> TwoRails::Pool(const std::string& more) const {
  const auto pools = PoolsOf(TwoRailFabric(
      R"(, "pools": [{"resource": "railhead.io/roce", "rails": ["rail0", "rail1"])" + more + "}]"));
  return pools.empty() ? std::make_shared<resources::ResourcePool>() : pools.front();
}

std::string TwoRailFabric(const std::string& more) {
  return R"({"version": 1, "rails": [
    {"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24", "nodeBlock": 26},
    {"name": "rail1", "pf": "pf1", "subnet": "10.101.0.0/24", "nodeBlock": 26}])" +
         more + "}";
}

std::vector<std::string> IdsOf(const resources::ResourcePool& pool) {
  std::vector<std::string> ids;
  for (const resources::PoolMember& member : pool.members) ids.push_back(member.function.id);
  return ids;
}

}  // namespace railhead::testing

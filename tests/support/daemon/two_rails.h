// A node with two rails on fake sysfs: PF pf0 on NUMA node 0, pf1 on node 1, each with
// VFs that have RDMA devices.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {

inline constexpr const char* kPf0 = "0000:43:00.0";
inline constexpr const char* kPf1 = "0000:83:00.0";

class TwoRails : public ::testing::Test {
 protected:
  explicit TwoRails(int vfs = 4);

  // By VF index.
  std::vector<std::string> vfs0_;
  std::vector<std::string> vfs1_;

  [[nodiscard]] std::shared_ptr<const inventory::Inventory> Discover(
      const inventory::HostNetwork& host = {}) const;
  // The pools of a fabric.json text. The test fails when the text is refused.
  [[nodiscard]] std::vector<std::shared_ptr<const resources::ResourcePool>> PoolsOf(
      const std::string& fabric) const;
  // The default pool over both rails, with further keys of the pool as JSON.
  [[nodiscard]] std::shared_ptr<const resources::ResourcePool> Pool(const std::string& more = "") const;

  FakeSysfs sysfs_;
  Root root_ = sysfs_.root();
};

// fabric.json with both rails and `more` (", \"pools\": ...").
std::string TwoRailFabric(const std::string& more = "");

std::vector<std::string> IdsOf(const resources::ResourcePool& pool);

}  // namespace railhead::testing

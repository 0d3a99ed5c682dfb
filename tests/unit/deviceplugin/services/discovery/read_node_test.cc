// The configuration of a node, applied to its hardware.
#include "deviceplugin/services/discovery/read_node.h"

#include <gtest/gtest.h>

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "tests/support/daemon/two_rails.h"
#include "tests/support/fake_kernel/fake_kernel.h"

namespace railhead::testing {
namespace {

// What the node's RDMA mode means for resources that give out plain device nodes.

constexpr const char* kConfig = "/etc/pcidp/config.json";
constexpr const char* kFabric = "/etc/railhead/fabric.json";

class NodePlanTest : public ::testing::Test {
 protected:
  NodePlanTest() : kernel_(sysfs_) {
    (void)kernel_.AddPf({.address = kPf0, .netdev = "pf0", .rdma = "mlx5_0"},
                        {.count = 2, .rdma = "{pf}_rdma{n}"});
    (void)kernel_.AddPf({.address = kPf1, .netdev = "pf1", .rdma = "mlx5_1"},
                        {.count = 2, .rdma = "{pf}_rdma{n}"});
  }
  Result<discovery::NodeReading> PlanFor(const ConfigSource& source) {
    return discovery::ReadNode(sysfs_.root(), kernel_, source);
  }

  FakeSysfs sysfs_;
  FakeKernel kernel_;
};

TEST_F(NodePlanTest, ExclusiveModeIsNoReasonToRefuseAConfigJson) {
  sysfs_.Write(kConfig, R"({"resourceList": [
      {"resourceName": "rdma", "selectors": {"pfNames": ["pf0"], "isRdma": true}},
      {"resourceName": "plain", "selectors": {"pfNames": ["pf1"]}}]})");
  const ConfigSource source{std::nullopt, kConfig, "intel.com"};
  const auto shared = PlanFor(source);
  ASSERT_TRUE(shared) << Describe(shared.error());
  EXPECT_TRUE(shared->snapshot.warnings.empty());
  kernel_.SetRdmaMode(RdmaNetnsMode::kExclusive);
  const auto exclusive = PlanFor(source);
  ASSERT_TRUE(exclusive) << Describe(exclusive.error());
  ASSERT_EQ(exclusive->snapshot.pools.size(), 2U);
  EXPECT_EQ(exclusive->snapshot.pools[0]->members.size(), 2U);
  EXPECT_EQ(exclusive->snapshot.pools[1]->members.size(), 2U);
  ASSERT_EQ(exclusive->snapshot.warnings.size(), 1U);
  const std::string& warning = exclusive->snapshot.warnings[0].message;
  EXPECT_NE(warning.find("intel.com/rdma delivers plain RDMA device nodes"), std::string::npos) << warning;
  EXPECT_EQ(warning.find("intel.com/plain"), std::string::npos) << warning;
}

TEST_F(NodePlanTest, AFabricThatMountsThemIsRefused) {
  sysfs_.Write(
      kFabric,
      TwoRailFabric(
          R"(, "pools": [{"resource": "railhead.io/roce", "rails": ["rail0", "rail1"], "deviceNodes": "mount"}])"));
  ASSERT_TRUE(PlanFor({}));
  kernel_.SetRdmaMode(RdmaNetnsMode::kExclusive);
  const auto refused = PlanFor({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_NE(refused.error().message.find("the node's RDMA mode is exclusive"), std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace railhead::testing

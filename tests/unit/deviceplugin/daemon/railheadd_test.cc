// The arguments and configuration of railheadd, and its plan for the node.
#include "deviceplugin/daemon/railheadd.h"

#include <gtest/gtest.h>

#include "tests/support/daemon/two_rails.h"
#include "tests/support/fake_kernel/fake_kernel.h"

namespace railhead::testing {
namespace {

using Strings = std::vector<std::string>;

// Arguments that DaemonSets of sriov-network-device-plugin pass.

Strings Ours(const Strings& theirs) {
  return daemon::TranslateGoFlags(theirs).arguments;
}

TEST(GoFlags, OneDashIsTwo) {
  EXPECT_EQ(Ours({"-config-file=/a/config.json", "-resource-prefix", "example.com"}),
            (Strings{"--config-file=/a/config.json", "--resource-prefix=example.com"}));
  EXPECT_EQ(Ours({"--config-file", "/a"}), Strings{"--config-file=/a"});
}

TEST(GoFlags, TheDaemonSetOfItsRepositoryStarts) {
  const auto foreign = daemon::TranslateGoFlags({"--log-dir=sriovdp", "--log-level=10"});
  EXPECT_EQ(foreign.arguments, Strings{"--log-level=debug"});
  EXPECT_EQ(foreign.dropped, Strings{"--log-dir=sriovdp"});
}

TEST(GoFlags, WhatItsEntryPointPassesOn) {
  const auto foreign =
      daemon::TranslateGoFlags({"-v", "3", "--log_dir", "/var/log/x", "--alsologtostderr", "--use-cdi"});
  EXPECT_EQ(foreign.arguments, (Strings{"--log-level=info", "--use-cdi"}));
  EXPECT_EQ(foreign.dropped, (Strings{"--log_dir /var/log/x", "--alsologtostderr"}));
}

TEST(GoFlags, ABooleansValueIsBehindItsEqualsSignOnly) {
  EXPECT_EQ(Ours({"-use-cdi=false"}), Strings{"--use-cdi=false"});
  EXPECT_EQ(Ours({"-use-cdi=T"}), Strings{"--use-cdi"});
  EXPECT_EQ(Ours({"-logtostderr", "--list"}), Strings{"--list"});
}

TEST(GoFlags, OursStayAsTheyAre) {
  const Strings ours{"--fabric", "/etc/railhead/fabric.json", "--log-level",
                     "warning",  "--resync-interval=5",       "x"};
  const auto foreign = daemon::TranslateGoFlags(ours);
  EXPECT_EQ(foreign.arguments, (Strings{"--fabric", "/etc/railhead/fabric.json", "--log-level=warning",
                                        "--resync-interval=5", "x"}));
  EXPECT_TRUE(foreign.dropped.empty());
  EXPECT_EQ(Ours({"-config-file"}), Strings{"--config-file"})
      << "what lacks its value is refused by the parser";
  EXPECT_EQ(Ours({"-unknown=1"}), Strings{"-unknown=1"});
}

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
  Result<daemon::NodePlan> PlanFor(const resources::ConfigSource& source) {
    return daemon::PlanNode(sysfs_.root(), kernel_, source);
  }

  FakeSysfs sysfs_;
  FakeKernel kernel_;
};

TEST_F(NodePlanTest, ExclusiveModeIsNoReasonToRefuseAConfigJson) {
  sysfs_.Write(kConfig, R"({"resourceList": [
      {"resourceName": "rdma", "selectors": {"pfNames": ["pf0"], "isRdma": true}},
      {"resourceName": "plain", "selectors": {"pfNames": ["pf1"]}}]})");
  const resources::ConfigSource source{std::nullopt, kConfig, "intel.com"};
  const auto shared = PlanFor(source);
  ASSERT_TRUE(shared) << Describe(shared.error());
  EXPECT_TRUE(shared->plan.warnings.empty());
  kernel_.SetRdmaMode(RdmaNetnsMode::kExclusive);
  const auto exclusive = PlanFor(source);
  ASSERT_TRUE(exclusive) << Describe(exclusive.error());
  ASSERT_EQ(exclusive->plan.pools.size(), 2U);
  EXPECT_EQ(exclusive->plan.pools[0]->members.size(), 2U);
  EXPECT_EQ(exclusive->plan.pools[1]->members.size(), 2U);
  ASSERT_EQ(exclusive->plan.warnings.size(), 1U);
  const std::string& warning = exclusive->plan.warnings[0].message;
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

// After VFs were made: drivers that do not come, and interfaces that udev renames meanwhile.
#include <chrono>

#include "deviceplugin/services/provision/report.h"
#include "tests/unit/deviceplugin/services/provision/fixture.h"

namespace railhead::testing {
namespace {

class SettleTest : public ProvisionFixture {
 protected:
  // Once, when the host is asked for this.
  void RenameAt(const std::string& call, const std::string& ns_link, const std::string& name) {
    kernel_.before = [this, call, ns_link, name](const std::string& begun) {
      if (begun.rfind(call, 0) != 0) return;
      FakeNetdev* netdev = kernel_.state().Find(kHost, ns_link);
      if (netdev == nullptr) return;
      netdev->link.name = name;
      ++renamed_;
      kernel_.Sync();
    };
  }

  int renamed_ = 0;
};

TEST_F(SettleTest, AVfThatNoDriverTakesIsNotWaitedForLong) {
  control_.Refuse(1);
  const auto begin = std::chrono::steady_clock::now();
  const provision::PfOutcome outcome = Apply0(R"({"vfs": 2, "driver": "mlx5_core"})");
  ASSERT_TRUE(outcome.error);
  const std::string said = Describe(*outcome.error);
  EXPECT_NE(said.find("VF 1"), std::string::npos) << said;
  EXPECT_NE(said.find(VfsOf(kPf0)[1]), std::string::npos) << said;
  EXPECT_NE(said.find("mlx5_core did not take it"), std::string::npos) << said;
  EXPECT_NE(said.find("modprobe"), std::string::npos) << said;
  EXPECT_LT(control_.latest_deadline(), begin + provision::kProvisionLimit / 2) << "the kernel has said no";
}

TEST_F(SettleTest, AnInterfaceThatComesLateIsWaitedFor) {
  control_.PutOff();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_FALSE(Apply0(R"({"vfs": 2})").error);
  EXPECT_GT(control_.latest_deadline(), begin);
}

// Without autoprobe the kernel binds only what is named.
TEST_F(SettleTest, WithoutAutoprobeADriverComesBackByItsName) {
  ASSERT_FALSE(Apply0(R"({"vfs": 2})").error);
  control_.AddPf(kPf0, false);
  const provision::PfOutcome outcome = Apply0(R"({"mac": "derived"})");
  EXPECT_FALSE(outcome.error) << Describe(*outcome.error);
  for (const std::string& vf : VfsOf(kPf0)) EXPECT_EQ(DriverOf(vf), "mlx5_core");
}

TEST_F(SettleTest, AVfThatIsRenamedBetweenTwoLooksGetsItsMtu) {
  RenameAt("FindLink host: pf0v1", "pf0v1", "ens1f0v1");
  const provision::PfOutcome outcome = Apply0(R"({"vfs": 2, "mtu": 9000})");
  EXPECT_EQ(renamed_, 1);
  EXPECT_FALSE(outcome.error) << Describe(*outcome.error);
  const FakeNetdev* netdev = NetdevOf(VfsOf(kPf0)[1]);
  ASSERT_NE(netdev, nullptr);
  EXPECT_EQ(netdev->link.name, "ens1f0v1");
  EXPECT_EQ(netdev->link.mtu, 9000);
}

// Its driver made another one, with another index, after the look.
TEST_F(SettleTest, AVfWhoseInterfaceIsMadeAgainGetsItsMtu) {
  int made_again = 0;
  kernel_.before = [&](const std::string& call) {
    FakeNetdev* netdev = call.rfind("ChangeLink", 0) == 0 ? kernel_.state().Find(kHost, "pf0v0") : nullptr;
    if (netdev == nullptr || ++made_again > 1) return;
    netdev->link.index += 1000;
    kernel_.Sync();
  };
  const provision::PfOutcome outcome = Apply0(R"({"vfs": 1, "mtu": 9000})");
  EXPECT_GT(made_again, 0);
  EXPECT_FALSE(outcome.error) << Describe(*outcome.error);
  EXPECT_EQ(NetdevOf(VfsOf(kPf0)[0])->link.mtu, 9000);
}

// The host's links are read once for all PFs.
TEST_F(SettleTest, APfThatIsRenamedAfterTheDumpIsFound) {
  ASSERT_FALSE(Apply0(R"({"vfs": 1, "driver": "vfio-pci"})").error);
  RenameAt("GetVf", "pf1", "ens9f1");
  const provision::VfsPlan plan = Plan(R"({"vfs": 1, "driver": "vfio-pci", "mac": "derived"})");
  EXPECT_EQ(renamed_, 1);
  ASSERT_EQ(plan.pfs.size(), 2U);
  EXPECT_FALSE(plan.pfs[1].refused) << Describe(*plan.pfs[1].refused);
  ASSERT_TRUE(plan.pfs[1].actual.link);
  EXPECT_EQ(plan.pfs[1].actual.link->name, "ens9f1");
}

}  // namespace
}  // namespace railhead::testing

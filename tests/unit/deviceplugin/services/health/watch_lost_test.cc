// Devices that the node had and has no more.
#include <gtest/gtest.h>

#include "tests/unit/deviceplugin/services/health/watch_fixture.h"

namespace railhead::testing {
namespace {

// The inventory changes at once, by the kernel's event.
class LostTest : public WatchTest {
 protected:
  void RemoveVfs() {
    for (const char* vf : {kVf, kVf2}) {
      sysfs_.Unbind(vf);
      sysfs_.Remove(std::string("/sys/bus/pci/devices/") + vf);
    }
    SetVfs(0, 0);
  }
  // Sets the number of VFs that the inventory shows, and the number in sriov_numvfs.
  void SetVfs(int there, int numvfs) {
    sysfs_.Write("/sys/bus/pci/devices/0000:43:00.0/sriov_numvfs", std::to_string(numvfs) + "\n");
    functions_ = {Function(kPf), Function(kVf, 0), Function(kVf2, 1)};
    functions_.resize(1 + static_cast<std::size_t>(there));
    functions_[0].vf_count = there;
    functions_[0].numvfs = numvfs;
    watch_->ReadAllNow();
  }
  void MakeVfs(int count) {
    sysfs_.AddVfs(kPf, count);
    SetVfs(count, count);
  }
};

TEST_F(LostTest, VfsThatWereRemovedAreTroubleUntilTheyAreMadeAgain) {
  Run(0, 0);
  RemoveVfs();
  EXPECT_TRUE(Run(1, 1).empty());
  const auto changes = Run(6, 11);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_TRUE(watch_->IsHealthy(kPf)) << "nothing is wrong with the PF itself";
  ASSERT_EQ(watch_->Reasons(kVf).size(), 1U);
  EXPECT_EQ(watch_->Reasons(kVf2)[0].text,
            "PF pf0 (0000:43:00.0) no longer has VFs: sriov_numvfs is 0, was 2");
  health::HealthState state = State();
  ASSERT_EQ(state.history.size(), 1U) << "however many they are";
  EXPECT_EQ(state.history[0].vfs, 2U);
  EXPECT_FALSE(state.history[0].itself);

  Restart();
  EXPECT_TRUE(Run(100, 130).empty());
  EXPECT_FALSE(watch_->IsHealthy(kVf)) << "the next process knows";
  MakeVfs(2);
  EXPECT_EQ(Run(135, 135).size(), 2U) << "at once: they are new";
  EXPECT_TRUE(watch_->IsHealthy(kVf));
  EXPECT_EQ(State().history.size(), 2U);
}

TEST_F(LostTest, VfsThatWereMadeAgainHaveNoPast) {
  sysfs_.Unbind(kVf);
  Run(0, 10);
  ASSERT_FALSE(watch_->IsHealthy(kVf));
  RemoveVfs();
  Run(11, 31);
  MakeVfs(2);
  Run(35, 35);
  EXPECT_TRUE(watch_->IsHealthy(kVf)) << "it has a driver, and is not the one that had none";
}

TEST_F(LostTest, SubfunctionsDoNotCareForVfs) {
  Run(0, 0);
  RemoveVfs();
  functions_.push_back(Function("mlx5_core.sf.2"));
  sysfs_.Write("/sys/bus/auxiliary/devices/mlx5_core.sf.2/sfnum", "2\n");
  sysfs_.Link("/sys/bus/auxiliary/devices/mlx5_core.sf.2/driver", "/sys/bus/auxiliary/drivers/mlx5_core.sf");
  Run(1, 31);
  EXPECT_FALSE(watch_->IsHealthy(kVf));
  EXPECT_TRUE(watch_->IsHealthy("mlx5_core.sf.2"));
}

TEST_F(LostTest, AnotherNumberIsSomebodysWish) {
  Run(0, 0);
  RemoveVfs();
  Run(1, 11);
  sysfs_.AddVfs(kPf, 1);
  SetVfs(1, 1);
  Run(16, 16);
  EXPECT_EQ(watch_->All().size(), 2U);
  EXPECT_TRUE(watch_->IsHealthy(kVf));
}

TEST_F(LostTest, OneVfOfSeveral) {
  Run(0, 0);
  sysfs_.Unbind(kVf2);
  sysfs_.Remove(std::string("/sys/bus/pci/devices/") + kVf2);
  SetVfs(1, 2);
  const auto changes = Run(1, 6);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].device, kVf2);
  EXPECT_EQ(changes[0].reasons.at(0).rule, health::HealthRule::kGone);
  EXPECT_TRUE(watch_->IsHealthy(kVf));
}

TEST_F(LostTest, APfThatFellOffTheBus) {
  Run(0, 0);
  RemoveVfs();
  sysfs_.Unbind(kPf);
  sysfs_.Remove(std::string("/sys/bus/pci/devices/") + kPf);
  functions_.clear();
  EXPECT_EQ(Run(1, 6).size(), 3U);
  EXPECT_EQ(watch_->Reasons(kVf).at(0).text, "PCI function 0000:43:00.0 no longer exists");
  const health::HealthState state = State();
  ASSERT_EQ(state.history.size(), 1U);
  EXPECT_TRUE(state.history[0].itself);
  EXPECT_EQ(state.history[0].vfs, 2U);
  EXPECT_EQ(state.devices.size(), 3U);
}

TEST_F(LostTest, ForgottenAfterADay) {
  constexpr int kDay = 86400;
  Run(0, 0);
  RemoveVfs();
  Run(1, 6);
  (void)Tick(kDay - 5);
  EXPECT_EQ(watch_->All().size(), 3U);
  Restart();
  (void)Tick(kDay - 4);
  EXPECT_EQ(watch_->All().size(), 3U);
  (void)Tick(kDay + 10);
  EXPECT_EQ(watch_->All().size(), 1U);
  EXPECT_EQ(State().devices.size(), 1U);
  EXPECT_EQ(State().history.size(), 1U) << "what has happened has happened";
}

TEST_F(LostTest, OnlyWhereARuleTells) {
  health::HealthRules rules;
  rules.Of(health::HealthRule::kVfCount).enabled = false;
  Restart(rules);
  Run(0, 0);
  RemoveVfs();
  Run(1, 6);
  EXPECT_EQ(watch_->Reasons(kVf).at(0).rule, health::HealthRule::kGone);
  rules.Of(health::HealthRule::kGone).enabled = false;
  watch_->SetRules(rules);
  Run(11, 11);
  EXPECT_EQ(watch_->All().size(), 1U);
}

}  // namespace
}  // namespace railhead::testing

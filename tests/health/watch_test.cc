#include "deviceplugin/health/watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "tests/health/fake_driver_source.h"
#include "tests/health/support.h"
#include "tests/sysfs/fake_sysfs.h"

namespace railhead::testing {
namespace {

constexpr const char* kStatePath = "/run/railhead/health.json";

NicFunction Function(const std::string& id, int vf_index = -1) {
  NicFunction function;
  function.id = id;
  function.address = PciAddress::Parse(id).value_or(PciAddress{});
  function.is_vf = vf_index >= 0;
  function.vf_index = vf_index;
  function.pf = *PciAddress::Parse(kPf);
  function.pf_name = "pf0";
  function.vf_count = function.is_vf ? 0 : 2;
  return function;
}

// A node with one PF and two VFs, of which the second may be in a pod.
class WatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sysfs_.AddPf({.address = kPf, .netdev = "pf0", .rdma = "mlx5_0"});
    sysfs_.AddVfs(kPf, 2);
    Restart();
  }
  void Restart(const HealthRules& rules = DefaultHealthRules()) {
    watch_.reset();
    auto source = std::make_unique<FakeDriverSource>();
    source_ = source.get();
    watch_ = std::make_unique<HealthWatch>(sysfs_.root(), rules, std::move(source));
  }
  HealthTick Tick(int second) {
    HealthTick tick = watch_->Tick(
        functions_, [this](const std::string& id) { return in_use_.contains(id); }, At(second));
    return tick;
  }
  // Ticks every interval from `from` to `to`; the changes.
  std::vector<HealthChange> Run(int from, int to) {
    std::vector<HealthChange> all;
    for (int second = from; second <= to; second += 5) {
      const HealthTick tick = Tick(second);
      EXPECT_TRUE(tick.problems.empty()) << Describe(tick.problems.front());
      all.insert(all.end(), tick.changes.begin(), tick.changes.end());
    }
    return all;
  }
  void CutPf() { SetPf("0", "1: DOWN"); }
  void RestorePf() { SetPf("1", "4: ACTIVE"); }
  void SetPf(const std::string& carrier, const std::string& port) {
    sysfs_.Write("/sys/class/net/pf0/carrier", carrier + "\n");
    sysfs_.Write("/sys/class/infiniband/mlx5_0/ports/1/state", port + "\n");
  }
  HealthState State() {
    auto state = ReadHealthState(sysfs_.root());
    EXPECT_TRUE(state && *state);
    return state && *state ? **state : HealthState{};
  }

  FakeSysfs sysfs_;
  FakeDriverSource* source_ = nullptr;
  std::unique_ptr<HealthWatch> watch_;
  std::vector<NicFunction> functions_ = {Function(kPf), Function(kVf, 0), Function(kVf2, 1)};
  std::set<std::string> in_use_;
};

TEST_F(WatchTest, WellIsQuiet) {
  EXPECT_TRUE(Run(0, 120).empty());
  for (const char* id : {kPf, kVf, kVf2}) EXPECT_TRUE(watch_->IsHealthy(id));
  EXPECT_TRUE(watch_->IsHealthy("0000:99:00.0")) << "never heard of";
  const HealthState state = State();
  EXPECT_EQ(state.devices.size(), 3U);
  EXPECT_TRUE(state.history.empty());
}

TEST_F(WatchTest, ACutCableAndItsRepair) {
  in_use_ = {kVf2};
  sysfs_.MoveToPod(kVf2);
  ASSERT_TRUE(Run(0, 5).empty());
  CutPf();
  EXPECT_EQ(Run(10, 20).size(), 3U);
  for (const char* id : {kPf, kVf, kVf2}) EXPECT_FALSE(watch_->IsHealthy(id));
  const auto reasons = watch_->Reasons(kVf);
  ASSERT_EQ(reasons.size(), 2U);
  EXPECT_EQ(reasons[0].text, "PF pf0 (0000:43:00.0) has no carrier");
  EXPECT_EQ(reasons[1].rule, HealthRule::kRdmaPort);
  RestorePf();
  EXPECT_TRUE(Run(25, 80).empty());
  EXPECT_EQ(Run(85, 85).size(), 3U);
  EXPECT_TRUE(watch_->IsHealthy(kVf2));
  const HealthState state = State();
  ASSERT_EQ(state.history.size(), 2U);
  EXPECT_EQ(state.history[0].vfs, 2U);
  EXPECT_FALSE(state.history[0].healthy);
  EXPECT_TRUE(state.history[1].healthy);
}

TEST_F(WatchTest, TheStateIsTakenUpAgain) {
  CutPf();
  Run(0, 10);
  const HealthState before = State();
  Restart();
  EXPECT_FALSE(watch_->IsHealthy(kVf)) << "before the first tick";
  EXPECT_EQ(watch_->Reasons(kVf).size(), 2U);
  EXPECT_TRUE(Run(100, 130).empty()) << "what is known is not told again";
  EXPECT_EQ(State(), before);
  RestorePf();
  EXPECT_EQ(Run(135, 200).size(), 3U);
}

TEST_F(WatchTest, ADamagedStateIsToldAndWrittenAnew) {
  sysfs_.Write(kStatePath, "{");
  Restart();
  HealthTick tick = Tick(0);
  ASSERT_EQ(tick.problems.size(), 1U);
  EXPECT_NE(tick.problems[0].message.find("taking up the health of an earlier process"), std::string::npos);
  EXPECT_TRUE(Tick(5).problems.empty());
  EXPECT_EQ(State().devices.size(), 3U);
}

TEST_F(WatchTest, AProblemIsToldOnceUntilItIsOver) {
  source_->error = Error{ErrorCode::kIo, "broken", "", 0};
  EXPECT_EQ(Tick(0).problems.size(), 2U) << "devlink and ethtool";
  EXPECT_TRUE(Tick(5).problems.empty());
  source_->error.reset();
  EXPECT_TRUE(Tick(10).problems.empty());
  source_->error = Error{ErrorCode::kIo, "broken", "", 0};
  EXPECT_EQ(Tick(15).problems.size(), 1U) << "devlink; counters are not due";
}

// Counters are read less often than all else.
TEST_F(WatchTest, AProblemThatLastsIsNotToldWheneverItIsMetAgain) {
  source_->error = Error{ErrorCode::kIo, "broken", "", 0};
  EXPECT_EQ(Tick(0).problems.size(), 2U) << "devlink and ethtool";
  for (int second = 5; second <= 90; second += 5) EXPECT_TRUE(Tick(second).problems.empty()) << second;
  source_->error.reset();
  EXPECT_TRUE(Run(95, 120).empty());
  source_->error = Error{ErrorCode::kIo, "broken", "", 0};
  EXPECT_EQ(Tick(125).problems.size() + Tick(150).problems.size(), 2U) << "it had been over";
}

TEST_F(WatchTest, AStateThatCannotBeSavedIsToldAndTriedAgain) {
  sysfs_.Write("/run/railhead", "a file");
  const HealthTick tick = Tick(0);
  ASSERT_EQ(tick.problems.size(), 1U);
  EXPECT_NE(tick.problems[0].message.find("saving health"), std::string::npos);
  EXPECT_TRUE(watch_->IsHealthy(kPf));
  std::filesystem::remove(sysfs_.directory() + "/run/railhead");
  EXPECT_TRUE(Tick(5).problems.empty());
  EXPECT_EQ(State().devices.size(), 3U);
}

TEST_F(WatchTest, TheFileIsWrittenOnlyForChanges) {
  Run(0, 10);
  sysfs_.Remove(kStatePath);
  Run(15, 60);
  EXPECT_FALSE(std::filesystem::exists(sysfs_.directory() + kStatePath));
  CutPf();
  Run(65, 75);
  EXPECT_TRUE(std::filesystem::exists(sysfs_.directory() + kStatePath));
}

// VFs that are well are read seldom, those that are not at every tick.
TEST_F(WatchTest, CadenceOfVfs) {
  Run(0, 0);
  sysfs_.Unbind(kVf);
  EXPECT_TRUE(Run(5, 55).empty()) << "not due";
  EXPECT_TRUE(Run(60, 60).empty()) << "seen, for less than downAfter";
  const auto changes = Run(65, 65);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].device, kVf);
  EXPECT_EQ(changes[0].reasons[0].rule, HealthRule::kUnbound);
}

TEST_F(WatchTest, HurryReadsAll) {
  Run(0, 0);
  sysfs_.Unbind(kVf);  // comes before the removal
  sysfs_.Remove(std::string("/sys/bus/pci/devices/") + kVf);
  watch_->Hurry();
  EXPECT_TRUE(Tick(1).changes.empty());
  EXPECT_EQ(Tick(3).changes.size(), 1U);
  EXPECT_FALSE(watch_->IsHealthy(kVf));
}

TEST_F(WatchTest, CountersAreReadSeldomAndCountEverywhere) {
  const std::string path = "/sys/class/infiniband/mlx5_0/ports/1/counters/local_link_integrity_errors";
  sysfs_.Write(path, "3\n");
  Run(0, 5);
  sysfs_.Write(path, "4\n");
  EXPECT_TRUE(Run(10, 25).empty()) << "not due";
  EXPECT_EQ(Run(30, 30).size(), 3U);
  EXPECT_EQ(watch_->Reasons(kVf).at(0).counter, "local_link_integrity_errors");
  source_->statistics["pf0"]["tx_pause_storm_error_events"] = 1;
  Run(35, 60);
  source_->statistics["pf0"]["tx_pause_storm_error_events"] = 2;
  Run(65, 90);
  EXPECT_EQ(watch_->Reasons(kVf).size(), 2U);
}

TEST_F(WatchTest, DevlinkReporters) {
  Run(0, 0);
  source_->failed[kPf] = {"fw_fatal"};
  EXPECT_EQ(Run(5, 10).size(), 3U);
  EXPECT_EQ(watch_->Reasons(kVf2).at(0).rule, HealthRule::kDevlink);
}

TEST_F(WatchTest, VfsWithoutTheirPfInTheInventory) {
  functions_.erase(functions_.begin());
  Run(0, 0);
  CutPf();
  EXPECT_EQ(Run(5, 15).size(), 3U) << "the PF is watched all the same";
  RestorePf();
  Run(20, 80);
  sysfs_.Write("/sys/bus/pci/devices/0000:43:00.0/sriov_numvfs", "0\n");
  const auto changes = Run(85, 90);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].reasons[0].rule, HealthRule::kVfCount);
}

TEST_F(WatchTest, WhatTheInventoryDropsIsForgotten) {
  Run(0, 0);
  functions_.pop_back();
  EXPECT_TRUE(Run(5, 5).empty());
  EXPECT_EQ(watch_->All().size(), 2U);
  EXPECT_EQ(State().devices.size(), 2U);
}

// As the inventory has it at once, by the kernel's event.
class LostTest : public WatchTest {
 protected:
  void RemoveVfs() {
    for (const char* vf : {kVf, kVf2}) {
      sysfs_.Unbind(vf);
      sysfs_.Remove(std::string("/sys/bus/pci/devices/") + vf);
    }
    SetVfs(0, 0);
  }
  // What the inventory shows and what sriov_numvfs says.
  void SetVfs(int there, int numvfs) {
    sysfs_.Write("/sys/bus/pci/devices/0000:43:00.0/sriov_numvfs", std::to_string(numvfs) + "\n");
    functions_ = {Function(kPf), Function(kVf, 0), Function(kVf2, 1)};
    functions_.resize(1 + static_cast<std::size_t>(there));
    functions_[0].vf_count = there;
    functions_[0].numvfs = numvfs;
    watch_->Hurry();
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
            "PF pf0 (0000:43:00.0) has no VFs any more: sriov_numvfs is 0, was 2");
  HealthState state = State();
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
  EXPECT_EQ(changes[0].reasons.at(0).rule, HealthRule::kGone);
  EXPECT_TRUE(watch_->IsHealthy(kVf));
}

TEST_F(LostTest, APfThatFellOffTheBus) {
  Run(0, 0);
  RemoveVfs();
  sysfs_.Unbind(kPf);
  sysfs_.Remove(std::string("/sys/bus/pci/devices/") + kPf);
  functions_.clear();
  EXPECT_EQ(Run(1, 6).size(), 3U);
  EXPECT_EQ(watch_->Reasons(kVf).at(0).text, "there is no PCI function 0000:43:00.0 any more");
  const HealthState state = State();
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
  HealthRules rules = DefaultHealthRules();
  rules.Of(HealthRule::kVfCount).enabled = false;
  Restart(rules);
  Run(0, 0);
  RemoveVfs();
  Run(1, 6);
  EXPECT_EQ(watch_->Reasons(kVf).at(0).rule, HealthRule::kGone);
  rules.Of(HealthRule::kGone).enabled = false;
  watch_->SetRules(rules);
  Run(11, 11);
  EXPECT_EQ(watch_->All().size(), 1U);
}

TEST_F(WatchTest, SubfunctionsHangOnTheirPf) {
  functions_ = {Function(kPf), Function("mlx5_core.sf.2")};
  sysfs_.Write("/sys/bus/auxiliary/devices/mlx5_core.sf.2/sfnum", "2\n");
  sysfs_.Link("/sys/bus/auxiliary/devices/mlx5_core.sf.2/driver", "/sys/bus/auxiliary/drivers/mlx5_core.sf");
  Run(0, 0);
  CutPf();
  EXPECT_EQ(Run(5, 15).size(), 2U);
  EXPECT_FALSE(watch_->IsHealthy("mlx5_core.sf.2"));
}

TEST_F(WatchTest, NewRules) {
  CutPf();
  Run(0, 10);
  ASSERT_FALSE(watch_->IsHealthy(kVf));
  HealthRules rules = DefaultHealthRules();
  rules.Of(HealthRule::kLink).enabled = rules.Of(HealthRule::kRdmaPort).enabled = false;
  watch_->SetRules(rules);
  EXPECT_EQ(Run(15, 15).size(), 3U);
  EXPECT_TRUE(watch_->IsHealthy(kVf));
  EXPECT_EQ(watch_->rules(), rules);
}

// Those who answer kubelet ask while a tick runs.
TEST_F(WatchTest, AskedFromOtherThreads) {
  std::atomic<bool> stop{false};
  std::atomic<int> answers{0};
  std::thread asking([&] {
    while (!stop) {
      (void)watch_->IsHealthy(kVf);
      ++answers;
      (void)watch_->Reasons(kVf);
      (void)watch_->All();
    }
  });
  for (int round = 0; round < 50; ++round) {
    (round % 4 < 2) ? CutPf() : RestorePf();
    Tick(round * 35);
  }
  while (answers == 0) std::this_thread::yield();
  stop = true;
  asking.join();
  EXPECT_GT(answers, 0);
}

}  // namespace
}  // namespace railhead::testing

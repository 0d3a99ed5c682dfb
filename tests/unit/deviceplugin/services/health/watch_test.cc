#include "deviceplugin/services/health/watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/node/resources/ddp_profiles.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/health/watched_functions.h"
#include "netns/base/node.h"
#include "tests/support/daemon/two_rails.h"
#include "tests/support/eventually.h"
#include "tests/support/sysfs/silent_file.h"
#include "tests/unit/deviceplugin/services/health/watch_fixture.h"

namespace railhead::testing {
namespace {

using Ids = std::set<std::string>;

constexpr const char* kStatePath = "/run/railhead/health.json";

TEST_F(WatchTest, WellIsQuiet) {
  EXPECT_TRUE(Run(0, 120).empty());
  for (const char* id : {kPf, kVf, kVf2}) EXPECT_TRUE(watch_->IsHealthy(id));
  EXPECT_TRUE(watch_->IsHealthy("0000:99:00.0")) << "never heard of";
  const health::HealthState state = State();
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
  EXPECT_EQ(reasons[1].rule, health::HealthRule::kRdmaPort);
  RestorePf();
  EXPECT_TRUE(Run(25, 80).empty());
  EXPECT_EQ(Run(85, 85).size(), 3U);
  EXPECT_TRUE(watch_->IsHealthy(kVf2));
  const health::HealthState state = State();
  ASSERT_EQ(state.history.size(), 2U);
  EXPECT_EQ(state.history[0].vfs, 2U);
  EXPECT_FALSE(state.history[0].healthy);
  EXPECT_TRUE(state.history[1].healthy);
}

TEST_F(WatchTest, TheStateIsTakenUpAgain) {
  CutPf();
  Run(0, 10);
  const health::HealthState before = State();
  Restart();
  EXPECT_FALSE(watch_->IsHealthy(kVf)) << "before the first tick";
  EXPECT_EQ(watch_->Reasons(kVf).size(), 2U);
  EXPECT_TRUE(Run(100, 130).empty()) << "what is known is not told again";
  EXPECT_EQ(State(), before);
  RestorePf();
  EXPECT_EQ(Run(135, 200).size(), 3U);
}

// Of a version whose rules judged by probes.
TEST_F(WatchTest, AFaultThatProbesFoundEnds) {
  sysfs_.Write(kStatePath,
               std::string(R"({"version": 1, "changes": [], "devices": [{"device": ")") + kPf +
                   R"(", "pf": ")" + kPf + R"(", "vf": false, "state": "Unhealthy",
      "since": "2026-03-01T12:00:00Z", "reasons": [{"rule": "unreachable", "device": ")" +
                   kPf + R"(", "text": "the rail reaches nothing", "since": "2026-03-01T12:00:00Z"}]}]})");
  Restart();
  Run(0, 5);
  EXPECT_TRUE(watch_->IsHealthy(kPf));
  EXPECT_TRUE(watch_->IsHealthy(kVf));
}

// A driver whose firmware hangs, in attributes of its own and of the kernel's core.
class SilentPfTest : public WatchTest, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(OfAnAttribute, SilentPfTest,
                         ::testing::Values("/sys/class/net/pf0/carrier",
                                           "/sys/class/infiniband/mlx5_0/ports/1/state",
                                           "/sys/bus/pci/devices/0000:43:00.0/sriov_numvfs"));

TEST_P(SilentPfTest, IsUnhealthyWithItsVfsUntilItAnswers) {
  Run(0, 10);
  auto silent = std::make_unique<SilentFile>(sysfs_.root().Path(GetParam()));
  const auto changes = Run(15, 60);
  ASSERT_EQ(changes.size(), 3U) << "each once";
  EXPECT_EQ(changes[0].device, kPf);
  for (const health::HealthChange& change : changes) {
    EXPECT_FALSE(change.healthy);
    ASSERT_EQ(change.reasons.size(), 1U) << change.device;
    EXPECT_EQ(change.reasons[0].rule, health::HealthRule::kNoAnswer);
    EXPECT_EQ(change.reasons[0].text, "PF pf0 (0000:43:00.0) does not answer");
  }
  EXPECT_EQ(State().devices.size(), 3U);
  silent.reset();
  int second = 60;
  EXPECT_TRUE(Eventually([&] {
    Tick(second += 5);
    return watch_->IsHealthy(kPf) && watch_->IsHealthy(kVf);
  }));
  EXPECT_GE(second, 125) << "a minute of answers";
}

// What was known before it fell silent stands.
TEST_F(WatchTest, AFaultIsNotOverBecauseNobodyAnswers) {
  CutPf();
  Run(0, 30);
  ASSERT_FALSE(watch_->IsHealthy(kPf));
  const SilentFile silent(sysfs_.root().Path("/sys/class/net/pf0/carrier"));
  sysfs_.Write("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  Run(35, 200);
  std::set<health::HealthRule> rules;
  for (const auto& reason : watch_->Reasons(kPf)) rules.insert(reason.rule);
  EXPECT_EQ(rules, (std::set{health::HealthRule::kLink, health::HealthRule::kRdmaPort,
                             health::HealthRule::kNoAnswer}));
}

TEST_F(WatchTest, ADamagedStateIsReportedAndWrittenAgain) {
  sysfs_.Write(kStatePath, "{");
  Restart();
  health::HealthTick tick = Tick(0);
  ASSERT_EQ(tick.problems.size(), 1U);
  EXPECT_NE(tick.problems[0].message.find("taking up the health of an earlier process"), std::string::npos);
  EXPECT_TRUE(Tick(5).problems.empty());
  EXPECT_EQ(State().devices.size(), 3U);
}

TEST_F(WatchTest, AProblemIsReportedOnceUntilItIsOver) {
  source_->error = Error{ErrorCode::kIo, "broken", "", 0};
  EXPECT_EQ(Tick(0).problems.size(), 2U) << "devlink and ethtool";
  EXPECT_TRUE(Tick(5).problems.empty());
  source_->error.reset();
  EXPECT_TRUE(Tick(10).problems.empty());
  source_->error = Error{ErrorCode::kIo, "broken", "", 0};
  EXPECT_EQ(Tick(15).problems.size(), 1U) << "devlink; counters are not due";
}

// Health reads counters less often than everything else.
TEST_F(WatchTest, ALastingProblemIsReportedOnlyOnce) {
  source_->error = Error{ErrorCode::kIo, "broken", "", 0};
  EXPECT_EQ(Tick(0).problems.size(), 2U) << "devlink and ethtool";
  for (int second = 5; second <= 90; second += 5) EXPECT_TRUE(Tick(second).problems.empty()) << second;
  source_->error.reset();
  EXPECT_TRUE(Run(95, 120).empty());
  source_->error = Error{ErrorCode::kIo, "broken", "", 0};
  EXPECT_EQ(Tick(125).problems.size() + Tick(150).problems.size(), 2U) << "it had been over";
}

TEST_F(WatchTest, AStateThatCannotBeSavedIsReportedAndTriedAgain) {
  sysfs_.Write("/run/railhead", "a file");
  const health::HealthTick tick = Tick(0);
  ASSERT_EQ(tick.problems.size(), 2U);
  EXPECT_NE(tick.problems[0].message.find("saving health"), std::string::npos);
  EXPECT_NE(tick.problems[1].message.find("keeping what was observed"), std::string::npos);
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

// Healthy VFs are read seldom, unhealthy ones at every tick.
TEST_F(WatchTest, CadenceOfVfs) {
  Run(0, 0);
  sysfs_.Unbind(kVf);
  EXPECT_TRUE(Run(5, 55).empty()) << "not due";
  EXPECT_TRUE(Run(60, 60).empty()) << "seen, for less than downAfter";
  const auto changes = Run(65, 65);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].device, kVf);
  EXPECT_EQ(changes[0].reasons[0].rule, health::HealthRule::kUnbound);
}

TEST_F(WatchTest, ReadAllNowReadsAll) {
  Run(0, 0);
  sysfs_.Unbind(kVf);  // comes before the removal
  sysfs_.Remove(std::string("/sys/bus/pci/devices/") + kVf);
  watch_->ReadAllNow();
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
  EXPECT_EQ(watch_->Reasons(kVf2).at(0).rule, health::HealthRule::kDevlink);
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
  EXPECT_EQ(changes[0].reasons[0].rule, health::HealthRule::kVfCount);
}

TEST_F(WatchTest, WhatTheInventoryDropsIsForgotten) {
  Run(0, 0);
  functions_.pop_back();
  EXPECT_TRUE(Run(5, 5).empty());
  EXPECT_EQ(watch_->All().size(), 2U);
  EXPECT_EQ(State().devices.size(), 2U);
}

// Health does not report a driver that is away for a moment. One that stays away is reported as a reset.
TEST_F(WatchTest, AResetIsNoNewsUnlessItLasts) {
  health::HealthRules rules;
  for (health::RuleSettings& settings : rules.rules) settings.down_after = settings.up_after = {};
  Restart(rules);
  Run(0, 5);
  const std::string device = sysfs_.directory() + "/sys/bus/pci/devices/" + kVf;
  JournalEntry entry;
  entry.key = ResetKey(kVf);
  entry.boot_id = BootId(sysfs_.root()).value();
  AttachedDevice link;
  link.device = kVf;
  link.pod_name = link.before.name = "pf0v0";
  entry.devices.push_back(link);
  const auto reset = [&] {
    ASSERT_TRUE(Journal(sysfs_.root()).Write(entry));
    for (const char* gone : {"/driver", "/net"})
      std::filesystem::rename(device + gone, device + gone + ".before");
  };
  const auto end = [&] {
    for (const char* back : {"/driver", "/net"})
      std::filesystem::rename(device + back + ".before", device + back);
    ASSERT_TRUE(Journal(sysfs_.root()).Remove(entry));
  };
  reset();
  watch_->ReadAllNow();
  EXPECT_TRUE(Run(10, 15).empty());
  end();
  EXPECT_TRUE(Run(20, 200).empty()) << "nothing is remembered of it";
  reset();
  EXPECT_TRUE(Run(205, 210).empty());
  const auto changes = Run(215, 220);
  ASSERT_FALSE(changes.empty());
  EXPECT_FALSE(watch_->IsHealthy(kVf));
  const auto reasons = watch_->Reasons(kVf);
  ASSERT_FALSE(reasons.empty());
  EXPECT_TRUE(std::any_of(reasons.begin(), reasons.end(), [](const health::HealthReason& reason) {
    return reason.rule == health::HealthRule::kNotReady &&
           reason.text.find("is being reset") != std::string::npos;
  }));
  end();
  Run(225, 600);
  EXPECT_TRUE(watch_->IsHealthy(kVf));
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
  health::HealthRules rules;
  rules.Of(health::HealthRule::kLink).enabled = rules.Of(health::HealthRule::kRdmaPort).enabled = false;
  watch_->SetRules(rules);
  EXPECT_EQ(Run(15, 15).size(), 3U);
  EXPECT_TRUE(watch_->IsHealthy(kVf));
  EXPECT_EQ(watch_->rules(), rules);
}

constexpr const char* kStorage = "0000:c3:00.0";

// Two PFs with VFs, and a third one of the host's.
class WatchedFunctionsTest : public TwoRails {
 protected:
  WatchedFunctionsTest() : TwoRails(2) {
    sysfs_.AddPf({.address = kStorage, .netdev = "eno2", .numa_node = 1});
    storage_vf_ = sysfs_.AddVfs(kStorage, 1).front();
  }
  NodeSnapshot PlanOf(const ConfigSource& source) {
    auto plan = TakeSnapshot(root_, source, inventory::HostNetwork{}, resources::DdpOfKernel(root_));
    EXPECT_TRUE(plan) << Describe(plan.error());
    return plan ? *std::move(plan) : NodeSnapshot{};
  }
  NodeSnapshot PlanOfFabric() {
    sysfs_.Write("/etc/railhead/fabric.json", TwoRailFabric());
    return PlanOf({});
  }
  // sriov-network-device-plugin's, which has no rails.
  NodeSnapshot PlanOfStorage() {
    sysfs_.Write("/config.json", R"({"resourceList": [{"resourceName": "any",
                                     "selectors": [{"pfNames": ["eno2"]}]}]})");
    return PlanOf({std::nullopt, "/config.json", "a.io"});
  }
  static Ids Watched(const NodeSnapshot& plan, const std::vector<health::DeviceHealth>& known = {}) {
    Ids ids;
    for (const inventory::NicFunction& function : WatchedFunctions(plan, known)) ids.insert(function.id);
    return ids;
  }
  [[nodiscard]] health::DeviceHealth Known(const std::string& id, bool healthy) const {
    health::DeviceHealth device;
    device.id = id;
    device.is_vf = id == storage_vf_;
    device.pf = kStorage;
    device.healthy = healthy;
    return device;
  }

  std::string storage_vf_;
};

TEST_F(WatchedFunctionsTest, RailsAndTheirVfs) {
  Ids expected = {kPf0, kPf1};
  expected.insert(vfs0_.begin(), vfs0_.end());
  expected.insert(vfs1_.begin(), vfs1_.end());
  EXPECT_EQ(Watched(PlanOfFabric()), expected);
  EXPECT_EQ(Watched(PlanOfFabric(), {Known(storage_vf_, true), Known(kStorage, false)}), expected)
      << "that it was watched once is no reason";
}

TEST_F(WatchedFunctionsTest, WhatMayBeGivenOutWithItsPf) {
  EXPECT_EQ(Watched(PlanOfStorage()), (Ids{kStorage, storage_vf_}));
}

// The PF has only this VF: no other function of the PF is in a pool.
TEST_F(WatchedFunctionsTest, AVfThatHasLostItsDriver) {
  sysfs_.Unbind(storage_vf_);
  const NodeSnapshot plan = PlanOfStorage();
  EXPECT_EQ(Watched(plan), Ids{}) << "nobody has ever given it out";
  EXPECT_EQ(Watched(plan, {Known(storage_vf_, true)}), (Ids{kStorage, storage_vf_}))
      << "health has not looked yet";
  EXPECT_EQ(Watched(plan, {Known(storage_vf_, false)}), (Ids{kStorage, storage_vf_}));
}

TEST_F(WatchedFunctionsTest, ThePfOfWhatHasGone) {
  EXPECT_TRUE(Watched(PlanOfFabric(), {Known("0000:c3:7f.7", true)}).contains(kStorage));
}

}  // namespace
}  // namespace railhead::testing

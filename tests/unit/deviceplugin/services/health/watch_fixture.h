// HealthWatch over a made-up node, whose clock the test turns.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/services/health/watch.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/unit/deviceplugin/services/health/fake_driver_source.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {

inline inventory::NicFunction Function(const std::string& id, int vf_index = -1) {
  inventory::NicFunction function;
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
  static health::HealthRules AllRules() {
    health::HealthRules rules;
    for (const health::HealthRule rule : health::AllHealthRules()) rules.Of(rule).enabled = true;
    return rules;
  }
  void Restart(const health::HealthRules& rules = AllRules()) {
    watch_.reset();
    source_ = std::make_shared<FakeDriverSource>();
    watch_ = std::make_unique<health::HealthWatch>(sysfs_.root(), rules, OpenShared(source_), probes_);
  }
  health::HealthTick Tick(int second) {
    health::HealthTick tick = watch_->Tick(
        functions_, [this](const std::string& id) { return in_use_.contains(id); }, At(second));
    return tick;
  }
  // Ticks every interval from `from` to `to`; the changes.
  std::vector<health::HealthChange> Run(int from, int to) {
    std::vector<health::HealthChange> all;
    for (int second = from; second <= to; second += 5) {
      const health::HealthTick tick = Tick(second);
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
  health::HealthState State() {
    auto state = health::kHealthFile.Read(sysfs_.root());
    EXPECT_TRUE(state && *state);
    return state && *state ? **state : health::HealthState{};
  }

  FakeSysfs sysfs_;
  std::shared_ptr<FakeDriverSource> source_;
  ProbeWorkers probes_;
  std::unique_ptr<health::HealthWatch> watch_;
  std::vector<inventory::NicFunction> functions_ = {Function(kPf), Function(kVf, 0), Function(kVf2, 1)};
  std::set<std::string> in_use_;
};

}  // namespace railhead::testing

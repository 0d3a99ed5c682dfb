#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/health/watch.h"
#include "tests/support/daemon/two_rails.h"

namespace railhead::testing {
namespace {

using Ids = std::set<std::string>;

constexpr const char* kStorage = "0000:c3:00.0";

// Two PFs with VFs, and a third one of the host's.
class WatchedFunctionsTest : public TwoRails {
 protected:
  WatchedFunctionsTest() : TwoRails(2) {
    sysfs_.AddPf({.address = kStorage, .netdev = "eno2", .numa_node = 1});
    storage_vf_ = sysfs_.AddVfs(kStorage, 1).front();
  }
  resources::Plan PlanOf(const resources::ConfigSource& source) {
    auto plan = MakePlan(root_, source, inventory::HostNetwork{}, resources::DdpOfKernel(root_));
    EXPECT_TRUE(plan) << Describe(plan.error());
    return plan ? *std::move(plan) : resources::Plan{};
  }
  resources::Plan PlanOfFabric() {
    sysfs_.Write("/etc/railhead/fabric.json", TwoRailFabric());
    return PlanOf({});
  }
  // sriov-network-device-plugin's, which has no rails.
  resources::Plan PlanOfStorage() {
    sysfs_.Write("/config.json", R"({"resourceList": [{"resourceName": "any",
                                     "selectors": [{"pfNames": ["eno2"]}]}]})");
    return PlanOf({std::nullopt, "/config.json", "a.io"});
  }
  static Ids Watched(const resources::Plan& plan, const std::vector<health::DeviceHealth>& known = {}) {
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

// Of a PF whose only VF it is: nothing else of it is in a pool.
TEST_F(WatchedFunctionsTest, AVfThatHasLostItsDriver) {
  sysfs_.Unbind(storage_vf_);
  const resources::Plan plan = PlanOfStorage();
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

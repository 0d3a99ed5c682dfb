// `railctl drain` and `railctl undrain` as processes, on a node with one rail.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/state_file.h"
#include "tests/support/process.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

class DrainCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sysfs_.AddPf({.address = kPf, .netdev = "pf0"});
    sysfs_.AddVfs(kPf, 2);
    sysfs_.Write("/etc/railhead/fabric.json", R"({"version": 1, "rails": [
        {"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24", "nodeBlock": 26}]})");
  }
  ProcessOutput Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RAILCTL);
    return RunProcess(arguments, {{"RAILHEAD_ROOT", sysfs_.directory()}}, "");
  }
  std::vector<std::string> Drained() {
    std::vector<std::string> devices;
    const auto drains = health::ReadDrains(sysfs_.root());
    for (const health::Drain& drain : drains.value()) devices.push_back(drain.device);
    return devices;
  }
  // Writes the health state that railheadd would write. If `well` is false, the VF has a reason of its own.
  void Seen(bool well) {
    health::HealthState state;
    const health::HealthReason drained{health::HealthRule::kDrained, kPf, "", "PF pf0 is drained",
                                       At(10).wall};
    const health::HealthReason unbound{health::HealthRule::kUnbound, kVf, "", "VF is bound to no driver",
                                       At(10).wall};
    state.devices = {{kPf, false, kPf, "pf0", false, At(10).wall, {drained}},
                     {kVf, true, kPf, "pf0", false, At(10).wall, {drained}}};
    if (!well) state.devices[1].reasons.push_back(unbound);
    ASSERT_TRUE(health::kHealthFile.Write(sysfs_.root(), state));
  }
  FakeSysfs sysfs_;
};

TEST_F(DrainCommandTest, ARailAPfAndAVf) {
  auto output = Run({"drain", "rail0", "--reason", "cable swap"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(output.out, "rail0 (0000:43:00.0) is drained: no new pod gets it\n");
  EXPECT_EQ(Drained(), std::vector<std::string>{kPf});
  output = Run({"drain", "pf0"});
  EXPECT_EQ(output.status, 0);
  EXPECT_EQ(output.out, "pf0 (0000:43:00.0) was drained already\n");
  EXPECT_EQ(Run({"drain", kVf}).status, 0);
  EXPECT_EQ(Drained(), (std::vector<std::string>{kPf, kVf}));
  const auto list = nlohmann::json::parse(Run({"drain", "-o", "json"}).out);
  EXPECT_EQ(list["drains"][0]["name"], "rail0");
  EXPECT_EQ(list["drains"][0]["reason"], "cable swap");
  EXPECT_NE(Run({"drain"}).out.find("cable swap"), std::string::npos);
}

TEST_F(DrainCommandTest, SaysWhichPodsDevicesStay) {
  sysfs_.Write(std::string("/run/railhead/locks/") + kVf2 + ".lock", "c1/rails@net1.json\n");
  const auto output = Run({"drain", "rail0", "-o", "json"});
  EXPECT_EQ(nlohmann::json::parse(output.out)["inPods"], nlohmann::json::array({kVf2}));
}

TEST_F(DrainCommandTest, WhatTheNodeDoesNotHave) {
  const auto output = Run({"drain", "rail7"});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("nothing on this node is called 'rail7'"), std::string::npos) << output.err;
  EXPECT_NE(output.err.find("did you mean rail0?"), std::string::npos) << output.err;
  EXPECT_EQ(Run({"undrain", "rail0"}).status, 1);
  EXPECT_TRUE(Drained().empty());
}

TEST_F(DrainCommandTest, UndrainsOnlyWhatIsHealthy) {
  ASSERT_EQ(Run({"drain", "rail0"}).status, 0);
  auto output = Run({"undrain", "rail0"});
  EXPECT_EQ(output.status, 1) << "its health is unknown";
  EXPECT_NE(output.err.find("--force"), std::string::npos) << output.err;
  Seen(false);
  output = Run({"undrain", "rail0"});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("unbound: VF is bound to no driver"), std::string::npos) << output.err;
  EXPECT_EQ(Drained().size(), 1U);
  Seen(true);
  output = Run({"undrain", "rail0"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(output.out, "rail0 (0000:43:00.0) is in use again\n");
  EXPECT_TRUE(Drained().empty());
}

TEST_F(DrainCommandTest, ForceUndrainsAll) {
  ASSERT_EQ(Run({"drain", "rail0"}).status, 0);
  const auto output = Run({"undrain", kPf, "--force", "-o", "json"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(nlohmann::json::parse(output.out)["device"], kPf);
  EXPECT_TRUE(Drained().empty());
}

}  // namespace
}  // namespace railhead::testing

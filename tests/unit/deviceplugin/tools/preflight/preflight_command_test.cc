// `railctl preflight` as a process, on a fake node that is good but for what a test spoils.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/tools/preflight/report.h"
#include "tests/support/process.h"
#include "tests/unit/deviceplugin/tools/doctor/node.h"

namespace railhead::testing {
namespace {

class PreflightCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MakeDoctorNode(sysfs_);
    for (const char* device : {"mlx5_0v0", "mlx5_1v0"}) {
      sysfs_.AddGid(device, 0, "fe80:0000:0000:0000:0000:0000:0000:0002", "IB/RoCE v1", "x");
      sysfs_.AddGid(device, 1, "fe80:0000:0000:0000:0000:0000:0000:0002", "RoCE v2", "x");
    }
    for (const char* pf : {"pf0", "pf1"}) SetCarrier(pf, "1");
    WriteHealth(true);
    lldp::LldpReport report;
    report.node = "node0";
    report.time = std::chrono::system_clock::now();
    ASSERT_TRUE(lldp::kLldpFile.Write(sysfs_.root(), report));
  }
  void SetCarrier(const std::string& pf, const std::string& value) {
    sysfs_.Write("/sys/class/net/" + pf + "/carrier", value + "\n");
  }
  void WriteHealth(bool well) {
    health::HealthState state;
    health::DeviceHealth device;
    device.id = device.pf = "0000:43:00.0";
    device.healthy = well;
    state.devices = {device};
    ASSERT_TRUE(health::kHealthFile.Write(sysfs_.root(), state));
  }
  [[nodiscard]] ProcessOutput Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {RAILCTL, "preflight"});
    return RunProcess(arguments, {{"RAILHEAD_ROOT", sysfs_.directory()}}, "");
  }
  // By check.
  [[nodiscard]] std::map<std::string, std::string> Fitness(std::vector<std::string> arguments = {}) const {
    arguments.insert(arguments.end(), {"-o", "json"});
    const auto json = nlohmann::json::parse(Run(arguments).out, nullptr, false);
    std::map<std::string, std::string> fitness;
    for (const auto& one : json["checks"]) fitness[one["check"]] = one["fitness"];
    fitness[""] = json["fitness"];
    return fitness;
  }
  FakeSysfs sysfs_;
};

TEST_F(PreflightCommandTest, AGoodNodeIsFit) {
  const ProcessOutput output = Run({});
  EXPECT_EQ(output.status, 0) << output.out << output.err;
  EXPECT_NE(output.out.find("node node0 is fit\n"), std::string::npos) << output.out;
}

TEST_F(PreflightCommandTest, OneThingThatIsWrongIsEnough) {
  SetCarrier("pf1", "0");
  EXPECT_EQ(Run({}).status, 1);
  EXPECT_EQ(Fitness().at("rails"), "unfit");
  EXPECT_EQ(Fitness().at("health"), "fit");
  EXPECT_EQ(Run({"--skip", "rails"}).status, 0);
  EXPECT_EQ(Fitness({"--skip", "rails"}).at("rails"), "skipped");
  SetCarrier("pf1", "1");
  WriteHealth(false);
  EXPECT_EQ(Fitness().at("health"), "unfit");
  WriteHealth(true);
  sysfs_.Write("/sys/bus/pci/devices/0000:82:04.0/config", AcsConfig(0x1d));
  EXPECT_EQ(Fitness().at("doctor"), "unfit");
  EXPECT_EQ(Run({"--skip", "pci.acs"}).status, 0);
}

TEST_F(PreflightCommandTest, WhatIsDrainedIsProvedBeforeItIsReturned) {
  ASSERT_TRUE(health::AddDrain(sysfs_.root(), {"0000:43:00.0", "rail0", "cable", {}}));
  EXPECT_EQ(Fitness().at("drained"), "unfit");
  EXPECT_EQ(Run({}).status, 1);
  EXPECT_EQ(Run({"--skip", "drained"}).status, 0);
}

TEST_F(PreflightCommandTest, WhatCannotBeJudgedIsAStatusOfItsOwn) {
  std::filesystem::remove(lldp::kLldpFile.PathIn(sysfs_.root()));
  EXPECT_EQ(Run({}).status, 5);
  EXPECT_EQ(Fitness().at(""), "unknown");
  SetCarrier("pf1", "0");
  EXPECT_EQ(Run({}).status, 1) << "unfit is worse";
}

TEST_F(PreflightCommandTest, APeerThatIsNotThere) {
  const auto fitness = Fitness({"--peer", "127.0.0.1:1"});
  EXPECT_EQ(fitness.at("rdma-test"), "unknown");
  EXPECT_EQ(Run({"--peer", "team/nobody"}).status, 5);
}

TEST_F(PreflightCommandTest, WrongCommandLines) {
  EXPECT_EQ(Run({"--skip", "nothing"}).status, 2);
  EXPECT_EQ(Run({"--device", "mlx5_0"}).status, 2) << "needs --peer";
  EXPECT_EQ(Run({"--min-gbit", "350"}).status, 2) << "needs --peer";
  EXPECT_EQ(Run({"--peer", "10.0.0.2:7000", "--min-gbit", "-1"}).status, 2);
}

}  // namespace
}  // namespace railhead::testing

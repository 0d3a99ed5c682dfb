// `railctl health` as a process.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "deviceplugin/services/health/state_file.h"
#include "tests/support/process.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

class CommandTest : public ::testing::Test {
 protected:
  ProcessOutput Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {RAILCTL, "health"});
    return RunProcess(arguments, {{"RAILHEAD_ROOT", temp_.directory()}}, "");
  }
  nlohmann::json RunJson(const std::vector<std::string>& arguments) {
    return nlohmann::json::parse(Run(arguments).out, nullptr, false);
  }
  void Save(bool well) {
    const health::HealthReason link{health::HealthRule::kLink, kPf, "",
                                    "PF pf0 (0000:43:00.0) has no carrier", At(10).wall};
    health::HealthState state;
    state.devices = {{kPf, false, kPf, "pf0", true, At(0).wall, {}},
                     {kVf, true, kPf, "pf0", true, At(0).wall, {}}};
    if (!well) {
      for (health::DeviceHealth& device : state.devices) {
        device.healthy = false;
        device.since = At(10).wall;
        device.reasons = {link};
      }
    }
    state.history = {{At(10).wall, kPf, true, 1, false, {link}, {}}};
    state.history.push_back({At(90).wall, kPf, false, 1, true, {}, {link}});
    state.history.push_back({At(91).wall, kVf2, true, 0, true, {}, {link}});
    ASSERT_TRUE(health::kHealthFile.Write(temp_.root(), state));
  }
  TempRoot temp_;
};

TEST_F(CommandTest, ATable) {
  Save(true);
  const auto output = Run({});
  EXPECT_EQ(output.status, 0) << output.err;
  const std::regex table(
      "DEVICE +PF +STATE +SINCE +REASON\n"
      "0000:43:00.0 +pf0 +Healthy +[0-9]+[smhd] +-\n"
      "0000:43:02.0 +pf0 +Healthy +[0-9]+[smhd] +-\n");
  EXPECT_TRUE(std::regex_match(output.out, table)) << output.out;
}

TEST_F(CommandTest, UnhealthyIsStatusOne) {
  Save(false);
  const auto output = Run({});
  EXPECT_EQ(output.status, 1);
  const std::regex line(
      "0000:43:02.0  pf0  Unhealthy  [0-9]+[smhd] +link: PF pf0 .0000:43:00.0. has no carrier\n");
  EXPECT_TRUE(std::regex_search(output.out, line)) << output.out;
  EXPECT_EQ(output.err, "");
}

TEST_F(CommandTest, Json) {
  Save(false);
  const auto json = RunJson({"-o", "json"});
  ASSERT_EQ(json["devices"].size(), 2U);
  EXPECT_EQ(json["devices"][0]["device"], kPf);
  EXPECT_EQ(json["devices"][0]["state"], "Unhealthy");
  EXPECT_EQ(json["devices"][1]["vf"], true);
  EXPECT_EQ(json["devices"][1]["reasons"][0]["rule"], "link");
  EXPECT_EQ(json["devices"][1]["reasons"][0]["device"], kPf);
  EXPECT_EQ(json["devices"][1]["since"], "2027-01-15T08:00:10Z");
}

TEST_F(CommandTest, History) {
  Save(true);
  const auto output = Run({"--history"});
  EXPECT_EQ(output.status, 0);
  EXPECT_EQ(
      output.out,
      "TIME                  DEVICE                 STATE      REASON\n"
      "2027-01-15T08:00:10Z  0000:43:00.0 and 1 VF  Unhealthy  link: PF pf0 (0000:43:00.0) has no carrier\n"
      "2027-01-15T08:01:30Z  1 VF of 0000:43:00.0   Healthy    over: link: PF pf0 (0000:43:00.0) has no "
      "carrier\n"
      "2027-01-15T08:01:31Z  0000:43:02.1           Healthy    over: link: PF pf0 (0000:43:00.0) has no "
      "carrier\n");
  const auto json = RunJson({"--history", "-o", "json"});
  ASSERT_EQ(json["changes"].size(), 3U);
  EXPECT_EQ(json["changes"][0]["vfs"], 1);
  EXPECT_EQ(json["changes"][1]["ended"][0]["rule"], "link");
}

TEST_F(CommandTest, OneDevice) {
  Save(true);
  EXPECT_EQ(RunJson({"-o", "json", kVf})["devices"].size(), 1U);
  // With what its PF had.
  EXPECT_EQ(RunJson({"-o", "json", "--history", kVf})["changes"].size(), 2U);
  const auto unknown = Run({"0000:99:00.0"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_EQ(unknown.err.rfind("railctl: nothing on this node is called '0000:99:00.0'\n  ", 0), 0U)
      << unknown.err;
}

TEST_F(CommandTest, NothingThere) {
  const auto output = Run({});
  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(output.out, "");
  EXPECT_NE(output.err.find("/run/railhead/health.json"), std::string::npos);
  EXPECT_NE(output.err.find("is it running?"), std::string::npos);
}

TEST_F(CommandTest, Damaged) {
  temp_.Write("/run/railhead/health.json", "{\"version\": 1, \"devices\": 3}");
  const auto output = Run({});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("/devices: is not a list of objects"), std::string::npos) << output.err;
}

TEST_F(CommandTest, WrongCommandLine) {
  EXPECT_EQ(Run({"--histroy"}).status, 2);
}

}  // namespace
}  // namespace railhead::testing

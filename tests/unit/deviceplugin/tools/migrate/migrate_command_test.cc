// `railctl migrate` as a process: files, exit status and what is left alone.
#include <filesystem>

#include "tests/support/process.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/tools/migrate/suite.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

class MigrateCommandTest : public ::testing::Test {
 protected:
  MigrateCommandTest() {
    temp_.Write("/in/config.json", DeviceConfigOf({{"net0", "ens1f0"}}));
    WriteNetwork(
        R"({"type": "sriov", "vlan": 100, "ipam": {"type": "host-local", "subnet": "10.56.0.0/24"}})");
    temp_.Write("/in/README", "no document");
    temp_.Write("/networks/net/10.56.0.7", "c1\r\nnet1");
    temp_.Write("/networks/net/last_reserved_ip.0", "10.56.0.7");
  }
  void WriteNetwork(const std::string& config) const {
    temp_.Write("/in/net.json", NetworkObject("net", "nvidia.com/net0", config).dump());
  }
  [[nodiscard]] ProcessOutput Run(const std::string& command,
                                  const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {RAILCTL, command};
    if (command == "migrate") arguments.insert(arguments.end(), {"--from", "/in", "/networks"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProcess(arguments, {{"RAILHEAD_ROOT", temp_.directory()}}, "");
  }
  TempRoot temp_;
};

TEST_F(MigrateCommandTest, WritesWhatConfigCheckTakes) {
  const ProcessOutput output = Run("migrate", {"--to", "/out/new", "--node", "gpu-1"});
  EXPECT_EQ(output.status, 0) << output.err << output.out;
  EXPECT_NE(output.out.find("All keys are carried over."), std::string::npos) << output.out;
  EXPECT_EQ(temp_.Read("/out/new/report.md"), output.out);
  EXPECT_EQ(FilesBelow(temp_.directory() + "/out/new"),
            (std::vector<std::string>{"fabric.json", "nad_train_net.json", "report.md"}));
  EXPECT_NE(output.out.find("`railctl ipam import host-local --network net --subnet 10.56.0.0/24`"),
            std::string::npos)
      << output.out;
  EXPECT_NE(output.out.find("/in/README: is neither .json nor .yaml"), std::string::npos) << output.out;
  const ProcessOutput checked = Run("config", {"check", "/out/new/fabric.json"});
  EXPECT_EQ(checked.status, 0) << checked.err;
  const Json fabric = Json::parse(temp_.Read("/out/new/fabric.json"), nullptr, false);
  EXPECT_EQ(fabric["rails"][0]["nodeRanges"]["gpu-1"], "10.56.0.0-10.56.0.255") << fabric;
}

TEST_F(MigrateCommandTest, SaysTheSameAsJsonAndWritesNothingWithoutOutput) {
  const ProcessOutput output = Run("migrate", {"-o", "json"});
  const Json report = Json::parse(output.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << output.out << output.err;
  EXPECT_EQ(report["ok"], true);
  EXPECT_EQ(report["needsDecision"], false);
  EXPECT_EQ(report["documents"].size(), 3U);
  EXPECT_EQ(report["documents"][1]["keys"][0]["outcome"], "kept");
  EXPECT_EQ(report["files"], (Json{"fabric.json", "nad_train_net.json", "report.md"}));
  EXPECT_FALSE(temp_.Exists("/out"));
}

TEST_F(MigrateCommandTest, NodesClaimIndices) {
  WriteNetwork(R"({"type": "sriov", "vlan": 100, "ipam": {"type": "whereabouts", "range": "10.56.0.0/24"}})");
  const ProcessOutput output = Run("migrate", {"--to", "/out", "--nodes", "4"});
  EXPECT_EQ(output.status, 4) << "no network has host-local's addresses\n" << output.err;
  EXPECT_NE(output.out.find("to /rails/0/subnet of fabric.json, of which each node has a block"),
            std::string::npos)
      << output.out;
  const Json fabric = Json::parse(temp_.Read("/out/fabric.json"), nullptr, false);
  EXPECT_EQ(fabric["addresses"]["index"]["from"], "kubernetes") << fabric;
  EXPECT_EQ(fabric["rails"][0]["nodeBlock"], 28) << fabric;
}

TEST_F(MigrateCommandTest, BlocksHaveRoomForTheVfs) {
  WriteNetwork(R"({"type": "sriov", "vlan": 100, "ipam": {"type": "whereabouts", "range": "10.56.0.0/24"}})");
  (void)Run("migrate", {"--to", "/out", "--nodes", "4", "--vfs", "30"});
  const Json fabric = Json::parse(temp_.Read("/out/fabric.json"), nullptr, false);
  EXPECT_EQ(fabric["rails"][0]["nodeBlock"], 26) << fabric;
  const ProcessOutput refused = Run("migrate", {"--nodes", "100", "--vfs", "8"});
  EXPECT_EQ(refused.status, 4);
  EXPECT_NE(refused.out.find("too small: 256 addresses for 100 nodes with 8 VFs each"), std::string::npos)
      << refused.out;
}

TEST_F(MigrateCommandTest, ADecisionIsAnExitStatus) {
  WriteNetwork(R"({"type": "sriov", "vlann": 100})");
  const ProcessOutput output = Run("migrate", {"--to", "/out"});
  EXPECT_EQ(output.status, 4) << output.err;
  EXPECT_NE(output.out.find("## To decide"), std::string::npos);
  EXPECT_TRUE(temp_.Exists("/out/fabric.json"));
}

TEST_F(MigrateCommandTest, NothingIsWrittenOverWithoutForce) {
  temp_.Write("/out/nad_train_net.json", "mine");
  const ProcessOutput refused = Run("migrate", {"--to", "/out"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("/out/nad_train_net.json is there already"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("--force"), std::string::npos);
  EXPECT_EQ(temp_.Read("/out/nad_train_net.json"), "mine");
  EXPECT_FALSE(temp_.Exists("/out/fabric.json")) << "all or nothing";
  EXPECT_EQ(Run("migrate", {"--to", "/out", "--force"}).status, 0);
  EXPECT_NE(temp_.Read("/out/nad_train_net.json"), "mine");
  EXPECT_EQ(Run("migrate", {"--to", "/out"}).status, 0) << "the same again";
}

TEST_F(MigrateCommandTest, WhatIsBrokenWritesNothing) {
  WriteNetwork(R"({"type": "sriov",})");
  const ProcessOutput output = Run("migrate", {"--to", "/out", "-o", "json"});
  EXPECT_EQ(output.status, 3);
  EXPECT_NE(output.err.find("train/net: /spec/config: no valid JSON at byte 18"), std::string::npos)
      << output.err;
  EXPECT_EQ(Json::parse(output.out, nullptr, false)["ok"], false);
  EXPECT_FALSE(temp_.Exists("/out"));
}

TEST_F(MigrateCommandTest, CommandLines) {
  EXPECT_EQ(RunProcess({RAILCTL, "migrate"}, {}, "").status, 2);
  EXPECT_EQ(Run("migrate", {"--store", "kubernetes"}).status, 2) << "an option of earlier versions";
  EXPECT_EQ(Run("migrate", {"--nodes", "0"}).status, 2);
  EXPECT_EQ(Run("migrate", {"--vfs", "8"}).status, 2) << "it goes with --nodes";
  EXPECT_EQ(Run("migrate", {"/nowhere"}).status, 3);
  temp_.Write("/none/x.json", "{}");
  const ProcessOutput none =
      RunProcess({RAILCTL, "migrate", "--from", "/none"}, {{"RAILHEAD_ROOT", temp_.directory()}}, "");
  EXPECT_EQ(none.status, 3);
  EXPECT_NE(none.err.find("found no document of the SR-IOV suite"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace railhead::testing

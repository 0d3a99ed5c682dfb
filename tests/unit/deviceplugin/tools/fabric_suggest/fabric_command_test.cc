// `railctl fabric suggest` as a process.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "deviceplugin/tools/fabric_suggest/report.h"
#include "tests/support/process.h"
#include "tests/support/sysfs/machines.h"
#include "tests/unit/deviceplugin/tools/fabric_suggest/nodes.h"

namespace railhead::testing {
namespace {

class FabricCommandTest : public ::testing::Test {
 protected:
  [[nodiscard]] ProcessOutput RunWith(const std::string& input, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), RAILCTL);
    return RunProcess(arguments, {{"RAILHEAD_ROOT", sysfs_.directory()}}, input);
  }
  [[nodiscard]] ProcessOutput Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"fabric", "suggest"});
    return RunWith("", std::move(arguments));
  }
  // What the node printed.
  std::string Write(const fabric_suggest::NodeObservation& node) {
    fabric_suggest::SuggestReport report;
    report.observations = {node};
    sysfs_.Write("/" + node.node + ".json", record::Dump(ToJson(report)) + "\n");
    return sysfs_.directory() + "/" + node.node + ".json";
  }

  FakeSysfs sysfs_;
};

TEST_F(FabricCommandTest, OfThisNode) {
  const FakeMachine machine = MakeDgxH100(sysfs_);
  sysfs_.AddVfs(machine.nics[0], 4);
  sysfs_.Write("/etc/railhead/node-name", "gpu-001\n");
  const ProcessOutput output = Run({"--listen", "0"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(nlohmann::json::parse(output.out)["rails"].size(), 8U) << output.out;
  EXPECT_NE(output.err.find("guess: VFs 4 (high): PFs have as many now\n"), std::string::npos) << output.err;
  sysfs_.Write("/etc/railhead/fabric.json", output.out);
  const ProcessOutput check = RunWith("", {"config", "check", "/etc/railhead/fabric.json"});
  EXPECT_EQ(check.status, 0) << check.out << check.err;
}

// What a node prints is what others take.
TEST_F(FabricCommandTest, JsonIsReadAgain) {
  MakeDgxH100(sysfs_);
  sysfs_.Write("/etc/railhead/node-name", "gpu-001\n");
  const ProcessOutput here = Run({"--listen", "0", "-o", "json"});
  ASSERT_EQ(here.status, 0) << here.err;
  EXPECT_EQ(here.err, "");
  const auto json = nlohmann::json::parse(here.out);
  for (const char* key : {"observations", "fabric", "guesses", "contradictions"})
    EXPECT_TRUE(json.contains(key)) << key;
  const ProcessOutput there = RunWith(here.out, {"fabric", "suggest", "-", "-o", "json"});
  EXPECT_EQ(there.status, 0) << there.err;
  EXPECT_EQ(there.out, here.out);
}

// The fabric in force has the former VLAN while pods have the rail.
TEST_F(FabricCommandTest, AChangeThatWaitsForPodsIsKept) {
  const std::string node = Write(GpuNode(0));
  auto fabric = nlohmann::json::parse(Run({node, "--from", ""}).out);
  sysfs_.Write("/etc/railhead/fabric.json", fabric.dump());
  fabric["rails"][3]["vlan"] = 303;
  sysfs_.Write("/config/fabric.json", fabric.dump());
  const nlohmann::json pending = {
      {"kind", "rail"}, {"name", "rail3"}, {"change", "changed"}, {"rails", {"rail3"}}, {"pods", {"a/b"}}};
  const auto follow = [&](const nlohmann::json& refused) {
    const nlohmann::json state = {
        {"version", 1}, {"file", "/config/fabric.json"}, {"refused", refused}, {"pending", {pending}}};
    sysfs_.Write("/run/railhead/fabric-follow.json", state.dump());
    return Run({node});
  };
  const auto vlan = [](const ProcessOutput& output) {
    return nlohmann::json::parse(output.out)["rails"][3].value("vlan", 0);
  };
  EXPECT_EQ(vlan(follow(nlohmann::json::array())), 303);
  EXPECT_EQ(vlan(follow({"/rails/3: wrong"})), 0) << "it is not what people may have";
  sysfs_.Remove("/config/fabric.json");
  const ProcessOutput host = follow(nlohmann::json::array());
  EXPECT_EQ(vlan(host), 0);
  EXPECT_EQ(host.status, 1);
  EXPECT_NE(host.err.find("lacks changes of it that wait for pods to end"), std::string::npos) << host.err;
}

TEST_F(FabricCommandTest, SubnetsOfASupernet) {
  const auto nodes = GpuNodes(2);
  const ProcessOutput output = Run({Write(nodes[0]), Write(nodes[1]), "--supernet", "10.104.0.0/13",
                                    "--rail-prefix", "16", "--gateway", "last"});
  ASSERT_EQ(output.status, 0) << output.err;
  const auto rails = nlohmann::json::parse(output.out)["rails"];
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const std::string network = "10." + std::to_string(104 + i);
    EXPECT_EQ(rails[i]["subnet"], network + ".0.0/16") << output.out;
    EXPECT_EQ(rails[i]["gateway"], network + ".255.254") << output.out;
  }
}

TEST_F(FabricCommandTest, OfManyNodes) {
  auto nodes = GpuNodes(3);
  nodes[2].pfs[0].mtu = 1500;
  std::vector<std::string> files;
  files.reserve(nodes.size());
  for (const auto& node : nodes) files.push_back(Write(node));
  const ProcessOutput output = Run(files);
  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(nlohmann::json::parse(output.out)["nodes"].size(), 3U);
  EXPECT_NE(
      output.err.find("contradiction: rail0: gpu-002: the MTU of the PF is 1500, on other nodes 9000\n"),
      std::string::npos)
      << output.err;
  files.pop_back();
  EXPECT_EQ(Run(files).status, 0);
  files.push_back(files[0]);
  const ProcessOutput twice = Run(files);
  EXPECT_EQ(twice.status, 1);
  EXPECT_NE(twice.err.find("a second observation of node gpu-000"), std::string::npos) << twice.err;
}

// Each that cannot be read is named, and the others give a fabric.
TEST_F(FabricCommandTest, FilesThatCannotBeRead) {
  const std::string good = Write(GpuNode(0));
  sysfs_.Write("/wrong.json", R"({"version": 1, "observations": [{"node": 7}]})");
  sysfs_.Write("/empty.json", "");
  const std::string directory = sysfs_.directory();
  const std::vector<std::string> bad = {directory + "/wrong.json", directory + "/empty.json",
                                        directory + "/none.json", directory};
  std::vector<std::string> files = bad;
  files.insert(files.begin() + 1, good);
  const ProcessOutput output = Run(files);
  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(nlohmann::json::parse(output.out)["rails"].size(), 8U);
  for (const char* line :
       {"/wrong.json#1: /observations/0/node: ", "/empty.json: it is empty\n",
        "/none.json: opening it: No such file or directory\n", ": reading it: Is a directory\n"})
    EXPECT_NE(output.err.find("unread: " + directory + line), std::string::npos) << output.err;
  files.insert(files.end(), {"-o", "json"});
  const ProcessOutput json = Run(files);
  EXPECT_EQ(json.status, 1);
  EXPECT_EQ(nlohmann::json::parse(json.out)["unread"].size(), bad.size()) << json.out;
  EXPECT_EQ(nlohmann::json::parse(json.out)["unread"][1]["file"], bad[1]);

  const ProcessOutput none = Run(bad);
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_NE(none.err.find("the files have no observation of a node"), std::string::npos) << none.err;
  EXPECT_NE(none.err.find("/empty.json: it is empty"), std::string::npos) << none.err;
}

// A rerun adds the new node, and touches nothing else.
TEST_F(FabricCommandTest, ThePresentFabricIsKept) {
  const ProcessOutput first = Run({Write(GpuNode(0)), "--from", ""});
  ASSERT_EQ(first.status, 0) << first.err;
  sysfs_.Write("/etc/railhead/fabric.json", first.out);
  const auto before = nlohmann::ordered_json::parse(first.out);
  const std::vector<std::string> both = {Write(GpuNode(1)), Write(GpuNode(0))};
  const ProcessOutput again = Run(both);
  ASSERT_EQ(again.status, 1) << "the host address of the new node is not excluded: " << again.err;
  auto now = nlohmann::ordered_json::parse(again.out);
  EXPECT_EQ(now["nodes"], nlohmann::ordered_json({{"gpu-000", 0}, {"gpu-001", 1}})) << again.out;
  now["nodes"].erase("gpu-001");
  EXPECT_EQ(now["rails"], before["rails"]);

  sysfs_.Write("/wrong.json", "{");
  const std::string wrong = sysfs_.directory() + "/wrong.json";
  const ProcessOutput refused = Run({both[0], "--from", wrong});
  EXPECT_EQ(refused.status, 3);
  EXPECT_NE(refused.err.find("railctl config check " + wrong), std::string::npos) << refused.err;
  EXPECT_EQ(Run({both[0], "--from", "/nowhere.json"}).status, 3);
  sysfs_.Write("/etc/railhead/fabric.json", "{");
  const ProcessOutput passed_over = Run({both[0]});
  EXPECT_EQ(passed_over.status, 1);
  EXPECT_NE(passed_over.err.find("unread: " + sysfs_.directory() + "/etc/railhead/fabric.json: "),
            std::string::npos)
      << passed_over.err;
  EXPECT_EQ(nlohmann::json::parse(passed_over.out)["rails"].size(), 8U);
}

TEST_F(FabricCommandTest, GroupsOfNodesAreKeptAndTheFabricOfOneNodeIsRefused) {
  const ProcessOutput first = Run({Write(GpuNode(0)), "--from", ""});
  ASSERT_EQ(first.status, 0) << first.err;
  auto base = nlohmann::ordered_json::parse(first.out);
  base["nodeGroups"] = {{{"name", "old"},
                         {"nodes", "gpu-000"},
                         {"ncclConfig", {{"env", {{"NCCL_DEBUG", "INFO"}}}}},
                         {"reachability", nullptr}}};
  sysfs_.Write("/base.json", base.dump());
  const ProcessOutput again = Run({Write(GpuNode(0)), "--from", sysfs_.directory() + "/base.json"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(nlohmann::ordered_json::parse(again.out)["nodeGroups"][0]["reachability"], nullptr);
  EXPECT_EQ(nlohmann::ordered_json::parse(again.out)["nodeGroups"][0]["ncclConfig"],
            base["nodeGroups"][0]["ncclConfig"]);

  base.erase("nodeGroups");
  base["node"] = {{"name", "gpu-000"}, {"groups", {"old"}}};
  sysfs_.Write("/of-node.json", base.dump());
  const ProcessOutput refused = Run({Write(GpuNode(0)), "--from", sysfs_.directory() + "/of-node.json"});
  EXPECT_EQ(refused.status, 3);
  EXPECT_NE(refused.err.find("/node: it is what node 'gpu-000' has of a fabric with groups"),
            std::string::npos)
      << refused.err;
}

TEST_F(FabricCommandTest, NothingToSuggest) {
  const ProcessOutput output = Run({"--listen", "0"});
  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(output.out, "");
  EXPECT_NE(output.err.find("no PF with RDMA"), std::string::npos) << output.err;
  EXPECT_EQ(Run({"/nowhere.json"}).status, 1);
  EXPECT_EQ(RunWith("", {"fabric", "suggest", "-"}).status, 1);
}

TEST_F(FabricCommandTest, AWrongTopologyJson) {
  MakeDgxH100(sysfs_);
  sysfs_.Write("/etc/railhead/topology.json", "{");
  EXPECT_EQ(Run({"--listen", "0"}).status, 3);
}

TEST_F(FabricCommandTest, WrongCommandLines) {
  EXPECT_EQ(Run({"--supernet", "10.0.0.0"}).status, 2);
  EXPECT_EQ(Run({"--supernet", "10.0.0.1/8"}).status, 2);
  EXPECT_EQ(Run({"--rail-prefix", "16"}).status, 2);
  EXPECT_EQ(Run({"--gateway", "middle"}).status, 2);
  EXPECT_EQ(Run({"--listen", "-1"}).status, 2);
  const ProcessOutput listening = Run({"--listen", "5", Write(GpuNode(0))});
  EXPECT_EQ(listening.status, 2) << "nobody would listen";
  EXPECT_NE(listening.err.find("--listen is for this node"), std::string::npos) << listening.err;
}

}  // namespace
}  // namespace railhead::testing

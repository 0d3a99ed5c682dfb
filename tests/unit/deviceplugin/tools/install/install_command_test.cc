// `railctl install` as a process, with the programs of this build.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cni/state/journal.h"
#include "ipam/store/store.h"
#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "tests/support/process.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using nlohmann::json;

constexpr const char* kFabric = R"({"version": 1, "rails": [{"name": "rail0", "pf": 0}]})";

class InstallCommandTest : public ::testing::Test {
 protected:
  InstallCommandTest() {
    EXPECT_TRUE(MakeDirectories(temp_.root().Path("/opt/cni/bin")));
    EXPECT_TRUE(MakeDirectories(temp_.root().Path("/etc/railhead")));
    temp_.Write("/config/fabric.json", kFabric);
  }
  [[nodiscard]] ProcessOutput Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {RAILCTL, "install"});
    return RunProcess(arguments, {{"RAILHEAD_ROOT", temp_.directory()}}, "");
  }
  [[nodiscard]] json RunJson(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"-o", "json"});
    return json::parse(Run(arguments).out, nullptr, false);
  }
  TempRoot temp_;
};

TEST_F(InstallCommandTest, ProgramsThatRun) {
  const ProcessOutput output = Run({"cni"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_NE(output.out.find("railhead-ipam  installed"), std::string::npos) << output.out;
  for (const char* name : {"railhead", "railhead-ipam"}) {
    const ProcessOutput version =
        RunProcess({temp_.directory() + "/opt/cni/bin/" + name, "--version"}, {}, "");
    EXPECT_EQ(version.out, std::string(name) + " " RAILHEAD_VERSION "\n");
  }
  const json again = RunJson({"cni"});
  ASSERT_EQ(again["programs"].size(), 2U) << again;
  EXPECT_EQ(again["programs"][0], (json{{"name", "railhead"},
                                        {"outcome", "unchanged"},
                                        {"version", RAILHEAD_VERSION},
                                        {"previous", RAILHEAD_VERSION}}));
}

// As after an update, whose plugins no longer have a key.
TEST_F(InstallCommandTest, WithAFabricThatTheyRefuseThePluginsStay) {
  for (const std::string name : {"railhead", "railhead-ipam"})
    temp_.Write("/opt/cni/bin/" + name, "#!/bin/sh\necho " + name + " 0.0.1\n", true);
  const std::string before = temp_.Read("/opt/cni/bin/railhead");
  const std::vector<std::pair<std::string, std::string>> gone = {
      {R"("health": {"unreachable": true})", "/health/unreachable: is no longer a setting"},
      {R"("nodeStatus": {"maxUnavailable": "5%"})", "/nodeStatus/maxUnavailable: is no longer a setting"},
      {R"("nodeStatus": {"taint": {"effect": "NoExecute"}})",
       "/nodeStatus/taint/effect: 'NoExecute' is not known"}};
  for (const auto& [key, said] : gone) {
    temp_.Write("/etc/railhead/fabric.json",
                R"({"version": 1, "rails": [{"name": "rail0", "pf": 0}], )" + key + "}");
    const ProcessOutput output = Run({"cni"});
    EXPECT_EQ(output.status, 3) << output.err;
    EXPECT_NE(output.err.find("the present programs stay: /etc/railhead/fabric.json: " + said),
              std::string::npos)
        << output.err;
    EXPECT_EQ(temp_.Read("/opt/cni/bin/railhead"), before);
    EXPECT_EQ(Run({"cli", "--to", "/opt/cni/bin"}).status, 0) << "operators need it to see why";
  }
  EXPECT_EQ(Run({"cni", "--config", "/config/none"}).status, 3);
  EXPECT_EQ(Run({"cni", "--config", "/config"}).status, 0) << "the next one is valid";
  EXPECT_NE(temp_.Read("/opt/cni/bin/railhead"), before);
}

// Nodes of earlier versions have leased blocks by it.
TEST_F(InstallCommandTest, WithAClusterStoreInTheFabricThePluginsStay) {
  for (const std::string name : {"railhead", "railhead-ipam"})
    temp_.Write("/opt/cni/bin/" + name, "#!/bin/sh\necho " + name + " 0.0.1\n", true);
  const std::string before = temp_.Read("/opt/cni/bin/railhead");
  temp_.Write("/etc/railhead/fabric.json", R"({"version": 1, "addresses": {"store": {"type": "kubernetes"}},
      "rails": [{"name": "rail0", "pf": 0, "subnet": "10.1.0.0/24"}]})");
  const ProcessOutput refused = Run({"cni"});
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_NE(refused.err.find("the present programs stay: /etc/railhead/fabric.json: /addresses/store"),
            std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("nodeBlock"), std::string::npos) << refused.err;
  EXPECT_EQ(temp_.Read("/opt/cni/bin/railhead"), before);
}

// Another node may have the same ones by its index.
TEST_F(InstallCommandTest, WithAddressesOfLeasedBlocksThePluginsStay) {
  for (const std::string name : {"railhead", "railhead-ipam"})
    temp_.Write("/opt/cni/bin/" + name, "#!/bin/sh\necho " + name + " 0.0.1\n", true);
  temp_.Write("/etc/railhead/fabric.json", kFabric);
  const std::string before = temp_.Read("/opt/cni/bin/railhead");
  const std::string subnet = "10.1.0.0/24";
  {
    auto store = ipam::AddressStore::Open(temp_.root());
    ASSERT_TRUE(store) << Describe(store.error());
    const ipam::AddressPool pool{subnet, *ipam::RangeSet::Make({*IpPrefix::Parse(subnet), {}, {}, {}}),
                                 std::chrono::seconds(0)};
    ASSERT_TRUE(store->Allocate({"net", "pod", "eth1"}, pool));
    const std::string key = "B" + subnet + std::string(1 + 7, '\0') + "\3";  // NUL, the block's number
    ASSERT_TRUE(store->Transact([&](ipam::LmdbTxn& txn, const ipam::ClockReading& /*now*/) -> Result<bool> {
      RH_TRY(txn.Put(key, "a block"));
      return true;
    }));
  }
  const ProcessOutput refused = Run({"cni"});
  EXPECT_EQ(refused.status, 1) << refused.err;
  EXPECT_NE(refused.err.find(subnet), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("drain the node's pods"), std::string::npos) << refused.err;
  EXPECT_EQ(temp_.Read("/opt/cni/bin/railhead"), before);
}

TEST_F(InstallCommandTest, ANewerProgramIsNotReplaced) {
  const std::string newer = "#!/bin/sh\necho railhead 99.0.0\n";
  temp_.Write("/opt/cni/bin/railhead", newer, true);
  for (const std::string name : {"railhead", "railhead-ipam"})
    temp_.Write("/image/" + name, "#!/bin/sh\necho " + name + " 1.0.0\n", true);
  const ProcessOutput output = Run({"cni", "--from", "/image"});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("version 99.0.0, newer than"), std::string::npos) << output.err;
  EXPECT_NE(output.err.find("--allow-downgrade"), std::string::npos) << output.err;
  EXPECT_NE(output.err.find("cniInstall.allowDowngrade"), std::string::npos) << output.err;
  EXPECT_EQ(temp_.Read("/opt/cni/bin/railhead"), newer);
  const json refused = RunJson({"cni", "--from", "/image"});
  EXPECT_EQ(refused["ok"], false);
  EXPECT_EQ(refused["error"]["code"], "conflict");
  EXPECT_EQ(Run({"cni", "--from", "/image", "--allow-downgrade"}).status, 0);
  EXPECT_NE(temp_.Read("/opt/cni/bin/railhead"), newer);
}

TEST_F(InstallCommandTest, RailctlItself) {
  EXPECT_EQ(Run({"cli"}).status, 1) << "there is no /usr/local/bin";
  EXPECT_TRUE(MakeDirectories(temp_.root().Path("/usr/local/bin")));
  const json installed = RunJson({"cli"});
  ASSERT_EQ(installed["programs"].size(), 1U) << installed;
  EXPECT_EQ(installed["programs"][0]["name"], "railctl");
  EXPECT_EQ(installed["programs"][0]["outcome"], "installed");
  const std::string path = temp_.directory() + "/usr/local/bin/railctl";
  EXPECT_EQ(RunProcess({path, "--version"}, {}, "").out, "railctl " RAILHEAD_VERSION "\n");
  const std::string newer = "#!/bin/sh\necho railctl 99.0.0\n";
  temp_.Write("/usr/local/bin/railctl", newer, true);
  EXPECT_NE(Run({"cli"}).err.find("version 99.0.0, newer than"), std::string::npos);
  EXPECT_EQ(temp_.Read("/usr/local/bin/railctl"), newer);
  EXPECT_EQ(RunJson({"cli", "--allow-downgrade"})["programs"][0]["outcome"], "replaced");
}

TEST_F(InstallCommandTest, TheListOfSystemCalls) {
  EXPECT_TRUE(MakeDirectories(temp_.root().Path("/seccomp")));
  const json installed = RunJson({"seccomp", "--to", "/seccomp"});
  EXPECT_EQ(installed["files"], (json{{{"name", "railheadd.json"}, {"outcome", "installed"}}})) << installed;
  const json profile = json::parse(temp_.Read("/seccomp/railheadd.json"), nullptr, false);
  EXPECT_EQ(profile["defaultAction"], "SCMP_ACT_ERRNO") << profile;
  EXPECT_GT(profile["syscalls"].size(), 5U);
  temp_.Write("/seccomp/railheadd.json", "{}");
  EXPECT_EQ(RunJson({"seccomp", "--to", "/seccomp"})["files"][0]["outcome"], "replaced");
  EXPECT_EQ(Run({"seccomp", "--to", "/nowhere"}).status, 1);
}

TEST_F(InstallCommandTest, CommandLines) {
  EXPECT_EQ(Run({}).status, 2);
  EXPECT_EQ(Run({"cni", "--to", "relative"}).status, 2);
  EXPECT_EQ(Run({"config"}).status, 2);
  EXPECT_EQ(Run({"cni", "--from", "/nowhere"}).status, 1);
  EXPECT_EQ(Run({"cni", "--to", "/nowhere"}).status, 1);
  const ProcessOutput help = Run({"cni", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("Exit status:"), std::string::npos);
}

TEST_F(InstallCommandTest, AConfigurationForAllParts) {
  temp_.Write("/config/topology.json", "{}");
  const json installed =
      RunJson({"config", "--from", "/config", "--node-name", "gpu-001", "--node-address", "2001:db8::7"});
  ASSERT_EQ(installed["files"].size(), 4U) << installed;
  EXPECT_EQ(temp_.Read("/etc/railhead/fabric.json"), kFabric);
  EXPECT_EQ(temp_.Read("/etc/railhead/topology.json"), "{}");
  EXPECT_EQ(*NodeName(temp_.root()), "gpu-001");
  EXPECT_EQ(NodeAddress(temp_.root()).value(), IpAddress::Parse("2001:db8::7"));
  EXPECT_EQ(RunJson({"config", "--from", "/config"})["files"][0]["outcome"], "unchanged");
}

// What others could write to, its readers refuse.
TEST_F(InstallCommandTest, ModesThatOthersCouldWriteTo) {
  const std::string folder = temp_.directory() + "/etc/railhead";
  const auto mode_of = [](const std::string& path) {
    return static_cast<unsigned>(std::filesystem::status(path).permissions());
  };
  const auto open_all = [&](mode_t folder_mode) {
    for (const char* name : {"fabric.json", "topology.json", "node-name"})
      ASSERT_EQ(::chmod((folder + "/" + name).c_str(), 0666), 0);
    ASSERT_EQ(::chmod(folder.c_str(), folder_mode), 0);
  };
  temp_.Write("/etc/railhead/fabric.json", kFabric);
  temp_.Write("/etc/railhead/topology.json", "{}");
  temp_.Write("/etc/railhead/node-name", "n1\n");
  open_all(0777);
  EXPECT_FALSE(NodeName(temp_.root()));
  const ProcessOutput output = Run({"config", "--from", "/config"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(mode_of(folder), 0755U);
  for (const char* name : {"fabric.json", "topology.json", "node-name"}) {
    EXPECT_EQ(mode_of(folder + "/" + name), 0644U) << name;
    EXPECT_NE(output.err.find("warning: others than root could write to " + folder + "/" + name),
              std::string::npos)
        << output.err;
  }
  EXPECT_EQ(*NodeName(temp_.root()), "n1");
  EXPECT_EQ(Run({"config", "--from", "/config"}).err, "") << "nothing is left to repair";
  open_all(01777);
  EXPECT_EQ(RunJson({"config", "--from", "/config"})["repaired"].size(), 3U);
  EXPECT_EQ(mode_of(folder), 01777U) << "the sticky bit keeps the files apart";
  ASSERT_EQ(::chmod(folder.c_str(), 0770), 0);
  EXPECT_EQ(Run({"config", "--from", "/config"}).status, 0);
  EXPECT_EQ(mode_of(folder), 0750U) << "no right is added";
  ASSERT_EQ(::chmod((folder + "/fabric.json").c_str(), 0666), 0);
  temp_.Write("/config/fabric.json", "{");
  EXPECT_EQ(Run({"config", "--from", "/config"}).status, 3);
  EXPECT_EQ(mode_of(folder + "/fabric.json"), 0666U) << "nothing changes";
  EXPECT_EQ(Run({"config", "--from", "/config", "--keep-valid"}).status, 0);
  EXPECT_EQ(mode_of(folder + "/fabric.json"), 0644U);
}

// The new plugins would refuse each call.
TEST_F(InstallCommandTest, WithAFabricThatOthersCanChangeThePluginsStay) {
  temp_.Write("/etc/railhead/fabric.json", kFabric);
  const std::string path = temp_.directory() + "/etc/railhead/fabric.json";
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  const ProcessOutput output = Run({"cni"});
  EXPECT_EQ(output.status, 3) << output.err;
  EXPECT_NE(output.err.find("the present programs stay: " + path), std::string::npos) << output.err;
  EXPECT_NE(output.err.find("chmod go-w " + path), std::string::npos) << output.err;
  EXPECT_FALSE(temp_.Exists("/opt/cni/bin/railhead"));
  // A ConfigMap's folder is writable to all, by kubelet.
  ASSERT_EQ(::chmod((temp_.directory() + "/config").c_str(), 0777), 0);
  EXPECT_EQ(Run({"cni", "--config", "/config"}).status, 0) << "install config comes next, and repairs it";
}

// A file that the operator wrote by hand stays, if this configuration does not have it.
TEST_F(InstallCommandTest, WhatAConfigurationLacksStays) {
  temp_.Write("/etc/railhead/topology.json", R"({"paths": []})");
  temp_.Write("/etc/railhead/fabric.json", "before");
  EXPECT_EQ(Run({"config", "--from", "/config"}).status, 0);
  EXPECT_EQ(temp_.Read("/etc/railhead/topology.json"), R"({"paths": []})");
  EXPECT_EQ(temp_.Read("/etc/railhead/fabric.json"), kFabric);
}

struct Wrong {
  std::string fabric;
  std::string topology;
  std::string node_name;
  std::string word;  // of the complaint
};

TEST_F(InstallCommandTest, AWrongConfigurationChangesNothing) {
  const std::string mounted = R"({"version": 1, "rails": [{"name": "rail0", "pf": 0, "softRoce": true}],
      "pools": [{"resource": "railhead.io/roce", "rails": ["rail0"], "deviceNodes": "mount"}]})";
  const std::vector<Wrong> all = {
      {"{", "{}", "n", "fabric.json"},
      {R"({"version": 1, "rails": [{"name": "rail0", "pf": 0, "vlam": 1}]})", "{}", "n", "vlan"},
      {R"({"version": 1, "rails": [{"name": "rail0", "pf": 0}], "health": {"intervalSeconds": 0}})", "{}",
       "n", "/health/intervalSeconds"},
      {mounted, "{}", "n", "/pools/0/deviceNodes"},
      {kFabric, R"({"paths": 1})", "n", "topology.json"},
      {kFabric, "{}", "two words", "not a node's name"}};
  temp_.Write("/etc/railhead/fabric.json", "before");
  for (const Wrong& wrong : all) {
    temp_.Write("/config/fabric.json", wrong.fabric);
    temp_.Write("/config/topology.json", wrong.topology);
    const ProcessOutput output = Run({"config", "--from", "/config", "--node-name", wrong.node_name});
    EXPECT_EQ(output.status, 3) << wrong.word;
    EXPECT_NE(output.err.find(wrong.word), std::string::npos) << output.err;
    EXPECT_EQ(temp_.Read("/etc/railhead/fabric.json"), "before") << wrong.word;
    EXPECT_FALSE(temp_.Exists("/etc/railhead/node-name"));
  }
  EXPECT_EQ(Run({"config", "--from", "/config", "--node-address", "gpu-001"}).status, 3);
  EXPECT_FALSE(temp_.Exists("/etc/railhead/node-address"));
  EXPECT_EQ(Run({"config", "--from", "/nowhere"}).status, 3);
  EXPECT_EQ(Run({"config", "--from", "/config", "--to", "/nowhere"}).status, 1);
}

std::string FabricWith(const std::string& more) {
  return R"({"version": 1, "rails": [{"name": "rail0", "pf": 0)" + more + "}]}";
}

// On a node with a pod on rail0.
class InstallBesidePodsTest : public InstallCommandTest {
 protected:
  void SetUp() override {
    EXPECT_EQ(Run({"config", "--from", "/config"}).status, 0);
    JournalEntry entry;
    entry.key = {"roce", "c1", "net1"};
    entry.boot_id = *BootId(temp_.root());
    entry.phase = Phase::kDone;
    entry.cni_args = {{"K8S_POD_NAMESPACE", "train"}, {"K8S_POD_NAME", "worker-0"}};
    entry.devices.resize(1);
    entry.devices[0].device = "0000:43:00.1";
    entry.devices[0].pf = "0000:43:00.0";
    entry.devices[0].vf = 0;
    entry.devices[0].rail = "rail0";
    entry.devices[0].pod_name = "net1";
    const auto written = Journal(temp_.root()).Write(entry);
    ASSERT_TRUE(written) << Describe(written.error());
  }
};

TEST_F(InstallBesidePodsTest, ARailInUseKeepsItsDefinition) {
  temp_.Write("/config/fabric.json", FabricWith(R"(, "vlan": 7)"));
  const ProcessOutput output = Run({"config", "--from", "/config"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_NE(output.err.find("rail0 is in use by 1 pod"), std::string::npos) << output.err;
  EXPECT_EQ(temp_.Read("/etc/railhead/fabric.json").find("vlan"), std::string::npos);
  const json installed = RunJson({"config", "--from", "/config"});
  ASSERT_EQ(installed["pending"].size(), 1U) << installed;
  EXPECT_EQ(installed["pending"][0]["name"], "rail0");
  EXPECT_EQ(installed["pending"][0]["pods"], json::array({"train/worker-0"}));
  EXPECT_EQ(installed["files"][0]["outcome"], "unchanged");
  const json forced = RunJson({"config", "--from", "/config", "--force"});
  EXPECT_TRUE(forced["pending"].empty()) << forced;
  EXPECT_EQ(temp_.Read("/etc/railhead/fabric.json"), temp_.Read("/config/fabric.json"));
}

TEST_F(InstallBesidePodsTest, WhatCannotBeComposedIsRefused) {
  temp_.Write("/config/fabric.json", R"({"version": 1, "rails": [{"name": "other", "pf": 0}]})");
  const ProcessOutput output = Run({"config", "--from", "/config"});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("railctl drain rail0"), std::string::npos) << output.err;
  EXPECT_EQ(temp_.Read("/etc/railhead/fabric.json"), kFabric);
}

// A node starts although the cluster's fabric is wrong.
TEST_F(InstallCommandTest, TheLastValidConfigurationCanStay) {
  const std::string wrong = FabricWith(R"(, "vlan": 9999)");
  temp_.Write("/config/fabric.json", wrong);
  const std::vector<std::string> keep = {"config", "--from", "/config", "--node-name", "n1", "--keep-valid"};
  EXPECT_EQ(Run(keep).status, 3) << "there is none";
  EXPECT_FALSE(temp_.Exists("/etc/railhead/node-name"));
  temp_.Write("/etc/railhead/fabric.json", "before");
  EXPECT_EQ(Run(keep).status, 3) << "it is not valid";
  temp_.Write("/etc/railhead/fabric.json", kFabric);
  const ProcessOutput output = Run(keep);
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_NE(output.err.find("/rails/0/vlan"), std::string::npos) << output.err;
  EXPECT_EQ(temp_.Read("/etc/railhead/fabric.json"), kFabric);
  EXPECT_EQ(*NodeName(temp_.root()), "n1");
  EXPECT_EQ(RunJson(keep)["refused"].size(), 1U);
}

// On the first start in a cluster: railheadd waits for the fabric.
TEST_F(InstallCommandTest, NoFabricYet) {
  std::filesystem::remove_all(temp_.directory() + "/config");
  std::filesystem::create_directories(temp_.directory() + "/config");
  std::vector<std::string> arguments = {"config", "--from", "/config", "--node-name", "n1"};
  EXPECT_EQ(Run(arguments).status, 3);
  EXPECT_FALSE(temp_.Exists("/etc/railhead/node-name"));
  arguments.emplace_back("--keep-valid");
  const ProcessOutput output = Run(arguments);
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_NE(output.err.find("no such file: "), std::string::npos) << output.err;
  EXPECT_EQ(*NodeName(temp_.root()), "n1");
  EXPECT_FALSE(temp_.Exists("/etc/railhead/fabric.json"));
  temp_.Write("/config/topology.json", "{");
  EXPECT_EQ(Run(arguments).status, 3) << "a wrong file is not a missing one";
}

}  // namespace
}  // namespace railhead::testing

// `railctl describe` and `railctl devices` as processes, on a node with pods.
#include <nlohmann/json.hpp>

#include "cni/state/tenants.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "tests/unit/deviceplugin/tools/railctl/pods_node.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

class DescribeCommandTest : public PodsNode {
 protected:
  void SetUp() override {
    sysfs_.AddAccelerator({.address = "0000:1b:00.0", .numa_node = 0});
    sysfs_.AddAccelerator({.address = "0000:9b:00.0", .numa_node = 1});
    PodsNode::SetUp();
    AttachTwoPods();
  }
  Json Describe(const std::string& what) {
    const auto output = Run({"describe", what, "-o", "json"});
    EXPECT_EQ(output.status, 0) << output.err;
    return Json::parse(output.out, nullptr, false);
  }
  // By device.
  std::map<std::string, Json> Devices(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"devices", "-o", "json"});
    const auto output = Run(arguments);
    EXPECT_EQ(output.status, 0) << output.err;
    std::map<std::string, Json> devices;
    const Json json = Json::parse(output.out, nullptr, false);
    for (const Json& one : json["devices"]) devices[one["device"]] = one;
    return devices;
  }
};

TEST_F(DescribeCommandTest, AVfInAPod) {
  const Json described = Describe("host1");
  EXPECT_EQ(described["kind"], "VF");
  ASSERT_EQ(described["devices"].size(), 1U);
  const Json& device = described["devices"][0];
  EXPECT_EQ(device["device"], vfs0_[1]);
  EXPECT_EQ(device["rail"], "rail0");
  EXPECT_EQ(device["pfName"], "pf0");
  EXPECT_EQ(device["vf"], 1);
  EXPECT_EQ(device["numaNode"], 0);
  EXPECT_EQ(device["rdmaDevice"], "mlx5_71");
  EXPECT_EQ(device["netdev"], "host1");
  EXPECT_EQ(device["gpus"], Json({"GPU0 0000:1b:00.0 NODE"}));
  EXPECT_EQ(device["switchPort"], "leaf1/Ethernet1/3");
  EXPECT_EQ(device["pod"], "train/worker-0");
  EXPECT_EQ(device["container"], kContainerA);
  EXPECT_EQ(device["interface"], "net1");
  EXPECT_EQ(device["addresses"], Json({"10.100.0.7/24"}));
  EXPECT_EQ(device["mac"], "0c:42:a1:00:01:01");
  EXPECT_EQ(device["vlan"], 100);
  EXPECT_EQ(device["healthy"], true);
  EXPECT_FALSE(device.contains("lastPod"));
  const auto text = Run({"describe", "host1"});
  EXPECT_NE(text.out.find("\nPOD "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(" train/worker-0\n"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("note: the node keeps only the last pod of a device"), std::string::npos)
      << text.out;
  EXPECT_EQ(text.out.find("LAST POD"), std::string::npos) << "what is empty is left out";
}

TEST_F(DescribeCommandTest, AFreeVfWithAFaultAndADrain) {
  WriteHealth({vfs0_[0]});
  ASSERT_TRUE(health::AddDrain(root_, {kPf0, "rail0", "cable swap", std::chrono::system_clock::now()}));
  ASSERT_TRUE(WriteTenant(root_, vfs0_[0], {"train", "train/worker-9", ""}));
  const Json device = Describe(vfs0_[0])["devices"][0];
  EXPECT_EQ(device["healthy"], false);
  EXPECT_EQ(device["reasons"][0]["text"], "it has no carrier");
  EXPECT_EQ(device["drain"]["reason"], "cable swap");
  EXPECT_EQ(device["lastPod"], "train/worker-9");
  EXPECT_FALSE(device.contains("pod"));
}

TEST_F(DescribeCommandTest, ARailWithItsVfs) {
  const Json described = Describe("rail0");
  EXPECT_EQ(described["kind"], "rail");
  ASSERT_EQ(described["devices"].size(), 5U);
  EXPECT_EQ(described["devices"][0]["device"], kPf0);
  EXPECT_EQ(Describe("pf0")["devices"].size(), 5U);
  const auto text = Run({"describe", "rail0"});
  EXPECT_EQ(text.out.rfind("rail rail0\nDEVICE ", 0), 0U) << text.out;
  EXPECT_NE(text.out.find("\nDEVICE        RAIL "), std::string::npos) << text.out;
}

TEST_F(DescribeCommandTest, APodWithItsNics) {
  WriteCheckpoint("uid-worker-0", vfs0_[3]);
  const Json described = Describe("train/worker-0");
  EXPECT_EQ(described["kind"], "pod");
  EXPECT_EQ(described["pod"]["uid"], "uid-worker-0");
  EXPECT_EQ(described["pod"]["containers"], Json({kContainerA}));
  ASSERT_EQ(described["devices"].size(), 1U);
  EXPECT_EQ(described["devices"][0]["device"], vfs0_[1]);
  EXPECT_EQ(described["notes"][0], "kubelet has allocated " + vfs0_[3] +
                                       ", which no attachment has yet: see railctl why train/worker-0");
  const auto text = Run({"describe", "aaaa1"});
  EXPECT_EQ(text.out.rfind("POD ", 0), 0U) << text.out;
  EXPECT_NE(text.out.find(" train/worker-0\nUID "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\n\nDEVICE  "), std::string::npos) << text.out;
}

TEST_F(DescribeCommandTest, AnAddress) {
  const auto state = [&](const std::string& address) { return Describe(address)["address"]["state"]; };
  const Json held = Describe("10.100.0.7");
  EXPECT_EQ(held["address"]["state"], "held");
  EXPECT_EQ(held["address"]["pod"], "train/worker-0");
  EXPECT_EQ(held["address"]["rail"], "rail0");
  EXPECT_EQ(held["devices"][0]["device"], vfs0_[1]);
  EXPECT_EQ(state("10.100.0.62"), "gateway");
  EXPECT_EQ(state("10.100.0.99"), "other node's");
  EXPECT_EQ(state("10.100.0.0"), "excluded") << "the network's address";
  const Json free = Describe("10.100.0.30")["address"];
  EXPECT_EQ(free["state"], "free");
  EXPECT_EQ(free["range"], "10.100.0.0-10.100.0.63");
  const std::string released = Allocate("cccc3333");
  EXPECT_EQ(state(released), "held");
  Release("cccc3333");
  const Json cooling = Describe(released)["address"];
  EXPECT_EQ(cooling["state"], "cooling down");
  EXPECT_EQ(cooling["container"], "cccc3333") << "who had it last";
  EXPECT_TRUE(cooling.contains("until")) << cooling;
  const auto none = Run({"describe", "192.0.2.1"});
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("rail0 10.100.0.0/24"), std::string::npos) << none.err;
}

// Each address outside of this node's range has its owner, whatever gives nodes their ranges.
TEST_F(DescribeCommandTest, WhoseAnotherNodesAddressIs) {
  const auto expect = [&](const std::string& address, const char* state, const Json& node,
                          const Json& index) {
    const Json found = Describe(address)["address"];
    EXPECT_EQ(found["state"], state) << found;
    EXPECT_EQ(found.value("node", Json()), node) << found;
    EXPECT_EQ(found.value("nodeIndex", Json()), index) << found;
  };
  expect("10.100.0.99", "other node's", "gpu-002", 1);
  expect("10.101.0.127", "other node's", "gpu-002", 1);
  expect("10.100.0.200", "no node's", nullptr, nullptr);
  const auto text = Run({"describe", "10.100.0.99"}).out;
  EXPECT_NE(text.find("\nNODE        gpu-002\nNODE INDEX  1\n"), std::string::npos) << text;

  const auto ranges = [&](const std::string& nodes) {
    sysfs_.Write("/etc/railhead/fabric.json", R"({"version": 1, )" + nodes + R"("rails": [
        {"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24", "nodeRanges": {
          "gpu-001": "10.100.0.0/26", "gpu-007": ["10.100.0.70", "10.100.0.80-10.100.0.90"],
          "3": "10.100.0.128/26"}}]})");
  };
  ranges(R"("nodes": {"gpu-003": 3}, )");
  expect("10.100.0.85", "other node's", "gpu-007", nullptr);
  expect("10.100.0.75", "no node's", nullptr, nullptr);
  expect("10.100.0.130", "other node's", "gpu-003", 3);
  ranges("");
  expect("10.100.0.130", "no node's", nullptr, nullptr);
}

// Of a node that claims its index this one knows the index, and the name once probes have shown it.
TEST_F(DescribeCommandTest, WhoseAnAddressOfAClaimedIndexIs) {
  sysfs_.Write("/etc/railhead/fabric.json",
               R"({"version": 1, "addresses": {"index": {"from": "kubernetes"}}, "rails": [
      {"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24", "nodeBlock": 28, "probeAddresses": "10.100.0.240-10.100.0.250"},
      {"name": "rail1", "pf": "pf1", "subnet": "fd00:1::/48", "nodeBlock": 64}]})");
  const auto expect = [&](const std::string& address, const char* state, const Json& node, int index) {
    const Json described = Describe(address);
    const Json& found = described["address"];
    EXPECT_EQ(found["state"], state) << found;
    EXPECT_EQ(found.value("node", Json()), node) << found;
    EXPECT_EQ(found["nodeIndex"], index) << found;
    const std::string notes = described["notes"].dump();
    const std::string hint = "kubectl get nodeindices node-" + std::to_string(index) + "\"";
    EXPECT_EQ(notes.find(hint) != std::string::npos, node.is_null()) << notes;
  };
  expect("10.100.0.40", "other node's", nullptr, 2);
  expect("10.100.0.245", "probe address", nullptr, 5);
  expect("fd00:1:0:ffff::7", "other node's", nullptr, 65535);
  reachability::ReachabilityReport report;
  report.node = "gpu-001";
  report.time = std::chrono::system_clock::now();
  reachability::RailReachability rail;
  rail.rail = "rail0";
  rail.probe_address = IpAddress::Parse("10.100.0.241");
  for (const auto& [node, address] : {std::pair{"gpu-009", "10.100.0.242"}, {"gpu-010", "10.100.0.245"}}) {
    reachability::PeerReachability peer;
    peer.node = node;
    peer.address = *IpAddress::Parse(address);
    rail.peers.push_back(peer);
  }
  report.rails = {rail};
  ASSERT_TRUE(WriteReachabilityReport(root_, report));
  expect("10.100.0.40", "other node's", "gpu-009", 2);
  expect("10.100.0.245", "probe address", "gpu-010", 5);
  expect("fd00:1:0:2::7", "other node's", "gpu-009", 2);
  expect("10.100.0.64", "other node's", nullptr, 4);
}

TEST_F(DescribeCommandTest, NothingOfThatName) {
  const auto none = Run({"describe", "rail9"});
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_NE(none.err.find("did you mean rail0"), std::string::npos) << none.err;
  EXPECT_EQ(Run({"describe", "aaaa"}).status, 1) << "two containers";
  EXPECT_EQ(Run({"describe"}).status, 2);
}

TEST_F(DescribeCommandTest, ASourceThatCannotBeReadIsANote) {
  sysfs_.Write("/run/railhead/health.json", "{");
  const Json described = Describe(vfs0_[1]);
  ASSERT_FALSE(described["notes"].empty());
  EXPECT_NE(described["notes"][0].get<std::string>().find("health.json"), std::string::npos);
  EXPECT_FALSE(described["devices"][0].contains("healthy"));
}

TEST_F(DescribeCommandTest, DevicesOfEachResource) {
  WriteHealth({vfs0_[0]});
  ASSERT_TRUE(health::AddDrain(root_, {vfs0_[2], vfs0_[2], "slow", std::chrono::system_clock::now()}));
  WriteCheckpoint("uid-new", vfs1_[0]);
  JournalEntry attaching = Entry("dddd4444", "worker-2", {vfs1_[1], kPf1, 1, "rail1", "10.101.0.8"});
  attaching.phase = Phase::kPlanned;
  Attach(attaching);
  auto devices = Devices();
  EXPECT_EQ(devices[vfs0_[0]]["state"], "unhealthy");
  EXPECT_EQ(devices[vfs0_[0]]["reason"], "link: it has no carrier");
  EXPECT_EQ(devices[vfs0_[0]]["resource"], "railhead.io/roce");
  EXPECT_EQ(devices[vfs0_[1]]["state"], "in use");
  EXPECT_EQ(devices[vfs0_[1]]["pod"], "train/worker-0");
  EXPECT_EQ(devices[vfs0_[2]]["state"], "drained");
  EXPECT_EQ(devices[vfs0_[2]]["reason"], "drained as " + vfs0_[2] + ": slow");
  EXPECT_EQ(devices[vfs0_[3]]["state"], "free");
  EXPECT_EQ(devices[vfs1_[0]]["state"], "allocated");
  EXPECT_EQ(devices[vfs1_[0]]["pod"], "uid-new");
  EXPECT_EQ(devices[vfs1_[1]]["state"], "attaching");
  EXPECT_EQ(devices[kPf0]["state"], "not offered");
  EXPECT_NE(devices[kPf0]["reason"].get<std::string>().find("VFs"), std::string::npos) << devices[kPf0];
  EXPECT_FALSE(devices[kPf0].contains("resource"));
  EXPECT_EQ(Devices({"--rail", "rail1"}).count(vfs0_[0]), 0U);
  EXPECT_EQ(Devices({"--rail", "rail1"}).count(vfs1_[0]), 1U);
  EXPECT_EQ(Run({"devices", "--rail", "rail7"}).status, 1);
  const auto table = Run({"devices"});
  EXPECT_EQ(table.out.rfind("RESOURCE          DEVICE        RAIL   NUMA  STATE        POD", 0), 0U)
      << table.out;
}

// Whatever a reader asks first.
TEST_F(DescribeCommandTest, WhatAResourceLacksHasItsReasonEverywhere) {
  const std::string why = "is bound to no driver";
  const auto says = [&](const std::string& text) { return text.find(why) != std::string::npos; };
  for (const char* command : {"devices", "status", "health"})
    EXPECT_FALSE(says(Run({command}).out + Run({command}).err)) << command;
  sysfs_.Unbind(vfs0_[3]);
  EXPECT_EQ(Devices()[vfs0_[3]]["reason"], why);
  EXPECT_EQ(Describe(vfs0_[3])["devices"][0]["notOffered"], why);
  EXPECT_TRUE(says(Run({"describe", vfs0_[3]}).out));
  EXPECT_FALSE(Describe(vfs0_[0])["devices"][0].contains("notOffered"));
  const auto status = Run({"status"});
  EXPECT_TRUE(says(status.out)) << status.out;
  EXPECT_NE(status.out.find("next: railctl devices"), std::string::npos) << status.out;
  const auto health = Run({"health"});
  EXPECT_TRUE(says(health.err)) << health.err;
  const Json listed = Json::parse(Run({"health", "-o", "json"}).out);
  ASSERT_EQ(listed["notOffered"].size(), 1U) << listed;
  EXPECT_EQ(listed["notOffered"][0]["id"], vfs0_[3]);
  EXPECT_EQ(listed["notOffered"][0]["because"], why);
  // railheadd no longer watches it.
  auto state = health::kHealthFile.Read(root_);
  ASSERT_TRUE(state && *state);
  std::erase_if((*state)->devices, [&](const health::DeviceHealth& one) { return one.id == vfs0_[3]; });
  ASSERT_TRUE(health::kHealthFile.Write(root_, **state));
  EXPECT_TRUE(says(Run({"health", vfs0_[3]}).err));
}

TEST_F(DescribeCommandTest, DevicesThatAFaultyPodKeeps) {
  WriteHealth({vfs0_[1]});
  auto devices = Devices();
  EXPECT_EQ(devices[vfs0_[1]]["state"], "in use");
  EXPECT_EQ(devices[vfs0_[1]]["reason"], "link: it has no carrier");
}

TEST_F(DescribeCommandTest, DevicesNeedAConfiguration) {
  sysfs_.Remove("/etc/railhead/fabric.json");
  EXPECT_EQ(Run({"devices"}).status, 3);
}

}  // namespace
}  // namespace railhead::testing

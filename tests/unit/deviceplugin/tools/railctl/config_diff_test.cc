// railctl config diff: what a new fabric.json changes on a node with pods.
#include "deviceplugin/tools/railctl/config_diff.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "tests/support/daemon/two_rails.h"
#include "tests/support/process.h"

namespace railhead::testing {
namespace {

using railctl::ChangedKind;
using railctl::ChangeWord;
using railctl::ConfigChange;
using Json = nlohmann::json;

// The rails of TwoRailFabric(), with further keys of rail0.
std::string FabricWith(const std::string& of_rail0, const std::string& more = "") {
  return R"({"version": 1, "rails": [
    {"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24", "nodeBlock": 26)" +
         of_rail0 + R"(},
    {"name": "rail1", "pf": "pf1", "subnet": "10.101.0.0/24", "nodeBlock": 26}])" +
         more + "}";
}

class ConfigDiffTest : public TwoRails {
 protected:
  void SetUp() override {
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "1111-2222\n");
    sysfs_.Write("/etc/railhead/fabric.json", TwoRailFabric());
    JournalEntry entry;
    entry.key = {"roce", "c1", "net1"};
    entry.boot_id = *BootId(root_);
    entry.phase = Phase::kDone;
    entry.cni_args = {{"K8S_POD_NAMESPACE", "train"}, {"K8S_POD_NAME", "worker-0"}};
    AttachedDevice link;
    link.device = vfs0_[1];
    link.pf = kPf0;
    link.vf = 1;
    link.rail = "rail0";
    link.pod_name = "net1";
    entry.devices = {link};
    const auto written = Journal(root_).Write(entry);
    ASSERT_TRUE(written) << Describe(written.error());
  }

  std::vector<ConfigChange> Diff(const std::string& fabric, const char* from = kFabricPath) {
    sysfs_.Write("/new.json", fabric);
    const auto before = railctl::ReadNodeConfig(root_, from);
    const auto after = railctl::ReadNodeConfig(root_, "/new.json");
    const auto holders = railctl::ReadHolders(root_);
    EXPECT_TRUE(before && after && *after && holders);
    if (!before || !after || !*after || !holders) return {};
    return DiffConfigs(*before ? &**before : nullptr, **after, *holders);
  }
  static const ConfigChange* Find(const std::vector<ConfigChange>& changes, ChangedKind kind,
                                  const std::string& name) {
    const auto found = std::ranges::find_if(
        changes, [&](const ConfigChange& change) { return change.kind == kind && change.name == name; });
    return found == changes.end() ? nullptr : &*found;
  }
  ProcessOutput Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {RAILCTL, "config", "diff"});
    return RunProcess(arguments, {{"RAILHEAD_ROOT", sysfs_.directory()}}, "");
  }
};

TEST_F(ConfigDiffTest, TheSameChangesNothing) {
  EXPECT_TRUE(Diff(TwoRailFabric()).empty());
  sysfs_.Write("/new.json", TwoRailFabric());
  const auto same = Run({"/new.json"});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(same.out, "/new.json changes nothing on this node\n");
}

TEST_F(ConfigDiffTest, AVlanNeedsADrainWherePodsHaveTheRail) {
  const auto changes = Diff(FabricWith(R"(, "vlan": 200)"));
  ASSERT_EQ(changes.size(), 1U);
  const ConfigChange& rail = changes[0];
  EXPECT_EQ(rail.kind, ChangedKind::kRail);
  EXPECT_EQ(rail.name, "rail0");
  EXPECT_EQ(rail.change, ChangeWord::kChanged);
  EXPECT_EQ(railctl::TextOf(rail.fields), "vlan - -> 200");
  EXPECT_EQ(rail.pods, (std::set<std::string>{"train/worker-0"}));
  EXPECT_EQ(rail.drain, (std::set<std::string>{"rail0"}));
}

TEST_F(ConfigDiffTest, WhatOnlyNewPodsGetNeedsNone) {
  const auto changes = Diff(FabricWith(R"(, "exclude": ["10.100.0.7"], "expectedSwitches": ["leaf-1"])"));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].fields.size(), 2U);
  EXPECT_TRUE(changes[0].drain.empty());
  EXPECT_TRUE(changes[0].pods.empty());
}

TEST_F(ConfigDiffTest, AnotherNameOfTheSamePfNeedsNone) {
  std::string by_address = TwoRailFabric();
  by_address.replace(by_address.find(R"("pf0")"), 5, '"' + std::string(kPf0) + '"');
  const auto renamed = Diff(by_address);
  ASSERT_EQ(renamed.size(), 1U);
  EXPECT_EQ(railctl::TextOf(renamed[0].fields), "pf pf0 -> " + std::string(kPf0));
  EXPECT_TRUE(renamed[0].drain.empty());
  std::string moved = TwoRailFabric();
  moved.replace(moved.find(R"("pf1")"), 5, R"("pfX")");
  moved.replace(moved.find(R"("pf0")"), 5, R"("pf1")");
  const auto changes = Diff(moved);
  const ConfigChange* rail = Find(changes, ChangedKind::kRail, "rail0");
  ASSERT_NE(rail, nullptr);
  EXPECT_EQ(rail->drain, (std::set<std::string>{"rail0"})) << railctl::TextOf(rail->fields);
}

TEST_F(ConfigDiffTest, AHolderOfAnAddressIsTouchedToo) {
  {  // One process at a time has the store open.
    auto store = ipam::AddressStore::Open(root_);
    ASSERT_TRUE(store) << Describe(store.error());
    const auto subnet = *IpPrefix::Parse("10.101.0.0/24");
    const ipam::AddressPool pool{"10.101.0.0/24", *ipam::RangeSet::Make({subnet, {}, {}, {}}),
                                 std::chrono::hours(1)};
    ASSERT_TRUE(store->Allocate({"macvlan", "0123456789abcdef", "eth1"}, pool));
  }
  std::string fabric = TwoRailFabric();
  fabric.replace(fabric.find("10.101.0.0/24"), 13, "10.109.0.0/24");
  const auto changes = Diff(fabric);
  const ConfigChange* rail = Find(changes, ChangedKind::kRail, "rail1");
  ASSERT_NE(rail, nullptr);
  EXPECT_EQ(rail->pods, (std::set<std::string>{"container 0123456789ab"}));
  EXPECT_EQ(rail->drain, (std::set<std::string>{"rail1"}));
}

// The node's part of rail1 moves away from a pod's address, by each key that decides it.
TEST_F(ConfigDiffTest, ANodesPodWhoseAddressWouldBeAnotherNodesIsNamed) {
  sysfs_.Write("/etc/railhead/node-name", "node-a\n");
  const auto with = [](const std::string& part, const std::string& nodes) {
    return R"({"version": 1, "nodes": )" + nodes + R"(, "rails": [
      {"name": "rail0", "pf": "pf0"}, {"name": "rail1", "pf": "pf1", "subnet": "10.101.0.0/24", )" +
           part + "}]}";
  };
  const std::string block = R"("nodeBlock": 26)";
  const std::string first = R"({"node-a": 0})";
  sysfs_.Write("/etc/railhead/fabric.json", with(block, first));
  {
    auto store = ipam::AddressStore::Open(root_);
    ASSERT_TRUE(store) << Describe(store.error());
    const auto subnet = *IpPrefix::Parse("10.101.0.0/26");
    const ipam::AddressPool pool{"10.101.0.0/24", *ipam::RangeSet::Make({subnet, {}, {}, {}}),
                                 std::chrono::hours(1)};
    ASSERT_TRUE(store->Allocate({"macvlan", "0123456789abcdef", "eth1"}, pool));
  }
  const std::set<std::string> pod = {"container 0123456789ab"};
  const auto index = Diff(with(block, R"({"node-a": 2})"));
  const ConfigChange* nodes = Find(index, ChangedKind::kFabric, "nodes");
  ASSERT_NE(nodes, nullptr);
  EXPECT_EQ(nodes->pods, pod);
  EXPECT_EQ(nodes->drain, (std::set<std::string>{"rail1"}));
  EXPECT_TRUE(
      Find(Diff(with(block, R"({"node-a": 0, "node-b": 1})")), ChangedKind::kFabric, "nodes")->pods.empty());
  // Ranges change at once, whatever pods have.
  const auto ranges = [&](const std::string& of_node) {
    return with(R"("nodeRanges": {"node-a": [")" + of_node + R"("]})", first);
  };
  sysfs_.Write("/etc/railhead/fabric.json", ranges("10.101.0.0/26"));
  EXPECT_EQ(Find(Diff(ranges("10.101.0.64/26")), ChangedKind::kRail, "rail1")->pods, pod);
  EXPECT_TRUE(Find(Diff(ranges("10.101.0.0/25")), ChangedKind::kRail, "rail1")->pods.empty());
}

TEST_F(ConfigDiffTest, ARailThatGoesTakesItsDevices) {
  const auto changes =
      Diff(R"({"version": 1, "rails": [{"name": "rail1", "pf": "pf1", "subnet": "10.101.0.0/24",
      "nodeBlock": 26}]})");
  const ConfigChange* rail = Find(changes, ChangedKind::kRail, "rail0");
  ASSERT_NE(rail, nullptr);
  EXPECT_EQ(rail->change, ChangeWord::kRemoved);
  EXPECT_EQ(rail->drain, (std::set<std::string>{"rail0"}));
  EXPECT_EQ(Find(changes, ChangedKind::kRail, "rail1")->drain, std::set<std::string>{});
  for (const std::string& vf : vfs0_) {
    const ConfigChange* device = Find(changes, ChangedKind::kDevice, vf);
    ASSERT_NE(device, nullptr) << vf;
    EXPECT_EQ(device->change, ChangeWord::kRemoved);
    EXPECT_EQ(device->pods.empty(), vf != vfs0_[1]);
    EXPECT_EQ(device->drain.empty(), vf != vfs0_[1]);
  }
  const ConfigChange* resource = Find(changes, ChangedKind::kResource, kDefaultResource);
  ASSERT_NE(resource, nullptr);
  EXPECT_NE(railctl::TextOf(resource->fields).find("devices 8 -> 4"), std::string::npos);
}

// A rail without `table` has one by its place. The live change keeps that of a rail in use.
TEST_F(ConfigDiffTest, AnotherPlaceNeedsNone) {
  Json fabric = Json::parse(TwoRailFabric());
  std::swap(fabric["rails"][0], fabric["rails"][1]);
  const auto changes = Diff(fabric.dump());
  const ConfigChange* rail = Find(changes, ChangedKind::kRail, "rail0");
  ASSERT_NE(rail, nullptr);
  EXPECT_EQ(railctl::TextOf(rail->fields), "table 100 -> 101");
  EXPECT_TRUE(rail->drain.empty());
  fabric["rails"][1]["table"] = 101;
  const auto stated = Diff(fabric.dump());
  rail = Find(stated, ChangedKind::kRail, "rail0");
  ASSERT_NE(rail, nullptr);
  EXPECT_EQ(rail->drain, (std::set<std::string>{"rail0"}));
}

TEST_F(ConfigDiffTest, AnUnreadableAttachmentMayBeOfAnyRail) {
  sysfs_.Write("/run/railhead/attachments/c2/roce@net1.json", "{");
  std::string fabric = FabricWith("");
  fabric.replace(fabric.find("10.101.0.0/24"), 13, "10.109.0.0/24");
  const auto changes = Diff(fabric);
  const ConfigChange* rail = Find(changes, ChangedKind::kRail, "rail1");
  ASSERT_NE(rail, nullptr);
  EXPECT_EQ(rail->drain, (std::set<std::string>{"rail1"}));
  EXPECT_EQ(rail->pods, (std::set<std::string>{"the unreadable attachment c2/roce@net1"}));
}

TEST_F(ConfigDiffTest, RailsThatTheNodeLacksDoNotCount) {
  std::string fabric = TwoRailFabric();
  fabric.insert(fabric.rfind(']'),
                R"(, {"name": "rail9", "pf": "pf9", "subnet": "10.109.0.0/24", "table": 190})");
  EXPECT_EQ(Find(Diff(fabric), ChangedKind::kRail, "rail9"), nullptr);
}

TEST_F(ConfigDiffTest, WithoutAFabricAllIsNew) {
  const auto changes = Diff(TwoRailFabric(), "/none.json");
  const ConfigChange* rail = Find(changes, ChangedKind::kRail, "rail0");
  ASSERT_NE(rail, nullptr);
  EXPECT_EQ(rail->change, ChangeWord::kAdded);
  EXPECT_TRUE(rail->drain.empty());
}

TEST_F(ConfigDiffTest, OtherKeysOfTheFabric) {
  const auto changes =
      Diff(FabricWith("", R"(, "addresses": {"reuseDelaySeconds": 60}, "rdmaMode": "exclusive")"));
  const ConfigChange* addresses = Find(changes, ChangedKind::kFabric, "addresses");
  ASSERT_NE(addresses, nullptr);
  EXPECT_EQ(railctl::TextOf(addresses->fields), "reuseDelaySeconds 600 -> 60");
  EXPECT_TRUE(addresses->drain.empty());
  const ConfigChange* mode = Find(changes, ChangedKind::kFabric, "rdmaMode");
  ASSERT_NE(mode, nullptr);
  EXPECT_EQ(mode->drain, (std::set<std::string>{"rail0"})) << "rail1 has no pods";
}

TEST_F(ConfigDiffTest, StatusesAndForms) {
  sysfs_.Write("/new.json", FabricWith(R"(, "mtu": 4200)"));
  const auto text = Run({"/new.json"});
  EXPECT_EQ(text.status, 4) << text.err;
  EXPECT_NE(text.out.find("mtu - -> 4200"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("before the change: railctl drain rail0,"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("after it: railctl undrain rail0\n"), std::string::npos) << text.out;
  const Json json = Json::parse(Run({"/new.json", "-o", "json"}).out, nullptr, false);
  EXPECT_EQ(json["drain"], Json({"rail0"})) << json;
  EXPECT_EQ(json["changes"][0]["kind"], "rail");
  EXPECT_EQ(json["changes"][0]["fields"][0], Json({{"field", "mtu"}, {"before", ""}, {"after", "4200"}}));
  sysfs_.Write("/wrong.json", FabricWith(R"(, "vlan": 9999)"));
  const auto wrong = Run({"/wrong.json"});
  EXPECT_EQ(wrong.status, 3);
  EXPECT_NE(wrong.err.find("/rails/0/vlan"), std::string::npos) << wrong.err;
  sysfs_.Write("/before.json", FabricWith(R"(, "mtu": 9000)"));
  const auto from = Run({"/new.json", "--from", "/before.json"});
  EXPECT_EQ(from.status, 4) << from.err;
  EXPECT_NE(from.out.find("mtu 9000 -> 4200"), std::string::npos) << from.out;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"/none.json"}, {"/new.json", "--from", "/none.json"}}) {
    const auto missing = Run(arguments);
    EXPECT_EQ(missing.status, 3);
    EXPECT_NE(missing.err.find("no such file: /none.json"), std::string::npos) << missing.err;
  }
  EXPECT_EQ(Run({}).status, 2);
}

}  // namespace
}  // namespace railhead::testing

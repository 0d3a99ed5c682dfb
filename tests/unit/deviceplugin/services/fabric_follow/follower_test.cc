// railheadd follows a directory: what it puts into /etc/railhead, when, and what it reports.
#include "deviceplugin/services/fabric_follow/follower.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "cni/fabric/fabric.h"
#include "cni/state/journal.h"
#include "deviceplugin/services/fabric_follow/install_config.h"
#include "netns/base/node.h"
#include "tests/support/eventually.h"
#include "tests/support/service/running.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using fabric_follow::Follower;
using fabric_follow::FollowState;
using fabric_follow::kFollowFile;
using fabric_follow::PendingWord;

constexpr const char* kInForce = "/etc/railhead/fabric.json";
constexpr const char* kWanted = "/config/fabric.json";

std::string TwoRailsWith(const std::string& of_rail0, const std::string& of_rail1 = "") {
  return R"({"version": 1, "rails": [
    {"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24", "nodeBlock": 26)" +
         of_rail0 + R"(},
    {"name": "rail1", "pf": "pf1", "subnet": "10.101.0.0/24", "nodeBlock": 26)" +
         of_rail1 + "}]}";
}

class FollowerTest : public ::testing::Test {
 protected:
  FollowerTest() {
    temp_.Write(kWanted, TwoRailsWith(""));
    temp_.Write("/etc/railhead/node-name", "n1\n");
  }

  void Attach(const std::string& rail, const std::string& container = "c1") {
    const auto written = Journal(temp_.root()).Write(EntryOf(rail, container));
    ASSERT_TRUE(written) << Describe(written.error());
  }
  void Detach(const std::string& rail, const std::string& container = "c1") {
    const auto removed = Journal(temp_.root()).Remove(EntryOf(rail, container));
    ASSERT_TRUE(removed) << Describe(removed.error());
  }
  // railheadd as it runs, or after a restart.
  void Restart() { follower_ = std::make_unique<Follower>(temp_.root(), "/config", &log_); }
  FollowState Step() {
    follower_->Step();
    auto state = follower_->state().Get()->value_or(FollowState{});
    const auto file = kFollowFile.Read(temp_.root());
    EXPECT_TRUE(file && *file && **file == state) << "the file says something else";
    return state;
  }
  Fabric InForce() {
    auto fabric = ReadFabric(temp_.root());
    EXPECT_TRUE(fabric && *fabric);
    return fabric && *fabric ? **fabric : Fabric{};
  }
  std::string Metrics() {
    MetricRegistry metrics;
    follower_->Register(metrics);
    return metrics.Page(ExpositionFormat::kText);
  }

  TempRoot temp_;
  Log log_{"error"};
  std::unique_ptr<Follower> follower_ = std::make_unique<Follower>(temp_.root(), "/config", &log_);

 private:
  JournalEntry EntryOf(const std::string& rail, const std::string& container) {
    JournalEntry entry;
    entry.key = {"roce", container, "net1"};
    entry.boot_id = *BootId(temp_.root());
    entry.phase = Phase::kDone;
    entry.cni_args = {{"K8S_POD_NAMESPACE", "train"}, {"K8S_POD_NAME", "worker-" + container}};
    AttachedDevice device;
    device.device = rail == "rail0" ? "0000:43:00.1" : "0000:83:00.1";
    device.pf = rail == "rail0" ? "0000:43:00.0" : "0000:83:00.0";
    device.vf = 0;
    device.rail = rail;
    device.pod_name = "net1";
    entry.devices = {device};
    return entry;
  }
};

TEST_F(FollowerTest, TheFirstFabricIsTakenAsAWhole) {
  Attach("rail0");
  EXPECT_EQ(Step(), (FollowState{kWanted, {}, {}}));
  EXPECT_EQ(temp_.Read(kInForce), TwoRailsWith(""));
}

// As kubelet mounts a ConfigMap. Where others could change the file itself, the fabric in force stays.
// Other nodes have other groups: each puts what it gets into force.
TEST_F(FollowerTest, OfAFabricWithGroupsTheNodesOwnIsInForce) {
  const auto with = [](const std::string& groups) {
    return TwoRailsWith("").substr(0, TwoRailsWith("").size() - 1) +
           R"(, "nodes": {"n1": 70}, "nodeGroups": [)" + groups + "]}";
  };
  const std::string first =
      R"({"name": "su1", "nodes": "n?", "indices": "64-95",
          "rails": {"rail0": {"subnet": "10.110.0.0/24", "nodeBlock": 28}, "rail1": {"subnet": "10.111.0.0/24", "nodeBlock": 28}}})";
  temp_.Write(kWanted, with(first));
  EXPECT_EQ(Step(), (FollowState{kWanted, {}, {}}));
  EXPECT_EQ(InForce().node_groups.size(), 0U);
  EXPECT_EQ(InForce().rails[0].subnet->ToString(), "10.110.0.0/24");
  EXPECT_EQ(InForce().of_node->groups, std::vector<std::string>{"su1"});
  const std::string installed = temp_.Read(kInForce);
  Step();
  EXPECT_EQ(temp_.Read(kInForce), installed);
  // A node gets into another group: what is free follows, a busy rail keeps its subnet and its part of it.
  Attach("rail0");
  temp_.Write(kWanted, with(R"({"name": "su1", "nodes": "m?", "indices": "64-65"},
      {"name": "su2", "nodes": "n1", "indices": "66-70",
          "rails": {"rail0": {"subnet": "10.120.0.0/24", "nodeBlock": 28}, "rail1": {"subnet": "10.121.0.0/24", "nodeBlock": 28}}})"));
  const auto before = InForce().rails[0].RangesOf("n1", 70);
  const FollowState waits = Step();
  ASSERT_EQ(waits.pending.size(), 1U) << (waits.refused.empty() ? "" : waits.refused.front());
  EXPECT_EQ(InForce().rails[0].RangesOf("n1", 70), before);
  EXPECT_EQ(InForce().rails[0].index, 70);
  EXPECT_EQ(InForce().rails[1].RangesOf("n1", 70), (std::vector<IpRange>{*IpRange::Parse("10.121.0.64/28")}));
  Detach("rail0");
  EXPECT_TRUE(Step().pending.empty());
  EXPECT_EQ(InForce().rails[0].RangesOf("n1", 70), (std::vector<IpRange>{*IpRange::Parse("10.120.0.64/28")}));
}

// Also one that keeps its own definition meanwhile.
TEST_F(FollowerTest, ABusyRailGetsTheRoutesToNewGroups) {
  const auto with = [](const std::string& mtu, const std::string& groups) {
    return R"({"version": 1, "nodes": {"n1": 64}, "rails": [{"name": "rail0", "pf": "pf0", "gateway": "last", "nodeSubnet": 28)" +
           mtu + R"(}], "nodeGroups": [{"name": "su1", "nodes": "n?", "indices": "64-79",
               "rails": {"rail0": {"subnet": "10.110.0.0/24"}}})" +
           groups + "]}";
  };
  const auto routes = [&] {
    const Fabric fabric = InForce();
    std::string text;
    for (const IpPrefix& route : fabric.rails.at(0).routes) text += route.ToString() + " ";
    return text;
  };
  temp_.Write(kWanted, with("", ""));
  EXPECT_EQ(Step(), (FollowState{kWanted, {}, {}}));
  EXPECT_EQ(routes(), "10.110.0.0/24 ");
  Attach("rail0");
  const std::string su2 = R"(, {"name": "su2", "nodes": "m?", "indices": "80-95",
      "rails": {"rail0": {"subnet": "10.110.1.0/24"}}})";
  temp_.Write(kWanted, with("", su2));
  EXPECT_EQ(Step(), (FollowState{kWanted, {}, {}})) << "it is no change of the rail";
  EXPECT_EQ(routes(), "10.110.0.0/23 ");
  temp_.Write(kWanted, with(R"(, "mtu": 4200)", ""));
  EXPECT_EQ(Step().pending.size(), 1U);
  EXPECT_EQ(InForce().rails[0].mtu, std::nullopt);
  EXPECT_EQ(routes(), "10.110.0.0/24 ");
}

TEST_F(FollowerTest, GroupsThatContradictEachOtherAreRefused) {
  Step();
  temp_.Write(kWanted, TwoRailsWith("").substr(0, TwoRailsWith("").size() - 1) + R"(, "nodeGroups": [
      {"name": "a", "nodes": "*", "rails": {"rail0": {"mtu": 1500}}},
      {"name": "b", "nodes": "n*", "rails": {"rail0": {"mtu": 9000}}}]})");
  const FollowState state = Step();
  ASSERT_EQ(state.refused.size(), 1U);
  EXPECT_NE(state.refused[0].find("groups 'a', 'b' give /rails/rail0/mtu different values"),
            std::string::npos)
      << state.refused[0];
  EXPECT_EQ(temp_.Read(kInForce), TwoRailsWith(""));
}

TEST_F(FollowerTest, AVolumeOfKubeletsIsTakenAndAFileThatOthersCanChangeIsNot) {
  const std::string folder = temp_.directory() + "/config";
  std::filesystem::create_directory(folder + "/..2026");
  std::filesystem::rename(folder + "/fabric.json", folder + "/..2026/fabric.json");
  std::filesystem::create_directory_symlink("..2026", folder + "/..data");
  std::filesystem::create_symlink("..data/fabric.json", folder + "/fabric.json");
  std::filesystem::permissions(folder, std::filesystem::perms::all);
  EXPECT_TRUE(Step().refused.empty());
  EXPECT_EQ(temp_.Read(kInForce), TwoRailsWith(""));
  temp_.Write("/config/..2026/fabric.json", TwoRailsWith(R"(, "vlan": 7)"));
  ASSERT_EQ(::chmod((folder + "/..2026/fabric.json").c_str(), 0666), 0);
  const FollowState refused = Step();
  ASSERT_EQ(refused.refused.size(), 1U);
  EXPECT_NE(refused.refused[0].find("chmod go-w " + folder + "/fabric.json"), std::string::npos)
      << refused.refused[0];
  EXPECT_EQ(temp_.Read(kInForce), TwoRailsWith(""));
}

TEST_F(FollowerTest, AChangeOfFreeRailsIsInForceAtOnce) {
  Step();
  const std::string changed = TwoRailsWith(R"(, "vlan": 7)", R"(, "mtu": 9000)");
  temp_.Write(kWanted, changed);
  EXPECT_TRUE(Step().pending.empty());
  EXPECT_EQ(temp_.Read(kInForce), changed);
}

TEST_F(FollowerTest, ABusyRailWaitsUntilItsPodHasEnded) {
  Step();
  Attach("rail0");
  const std::string changed = TwoRailsWith(R"(, "vlan": 7)", R"(, "vlan": 8)");
  temp_.Write(kWanted, changed);
  const FollowState waits = Step();
  ASSERT_EQ(waits.pending.size(), 1U);
  EXPECT_EQ(waits.pending[0].name, "rail0");
  EXPECT_EQ(waits.pending[0].pods, std::set<std::string>{"train/worker-c1"});
  EXPECT_EQ(InForce().FindRail("rail0")->vlan, std::nullopt);
  EXPECT_EQ(InForce().FindRail("rail1")->vlan, 8);
  EXPECT_NE(Metrics().find("railhead_fabric_pending_rails 1"), std::string::npos) << Metrics();
  Detach("rail0");
  EXPECT_EQ(Step(), (FollowState{kWanted, {}, {}}));
  EXPECT_EQ(temp_.Read(kInForce), changed);
  EXPECT_NE(Metrics().find("railhead_fabric_pending_rails 0"), std::string::npos) << Metrics();
}

std::string RailsOn(const std::string& rail0, const std::string& rail1) {
  return R"({"version": 1, "rails": [{"name": "rail0", "pf": )" + rail0 + R"(}, {"name": "rail1", "pf": )" +
         rail1 + "}]}";
}

TEST_F(FollowerTest, TheNameOfAPfItsAddressAndItsPositionAreTheSame) {
  FakeSysfs sysfs(temp_.directory());
  sysfs.AddPf({.address = "0000:43:00.0", .netdev = "pf0"});
  sysfs.AddPf({.address = "0000:83:00.0", .netdev = "pf1"});
  const std::vector<std::string> first = {R"("pf0")", R"("0000:43:00.0")", "0", R"(["pf0", "pf7"])"};
  const std::vector<std::string> second = {R"("pf1")", R"("0000:83:00.0")", "1", R"(["pf1", "pf7"])"};
  temp_.Write(kWanted, RailsOn(first[0], second[0]));
  Step();
  Attach("rail0");
  for (const std::size_t way : {1, 2, 0, 2, 1}) {
    const std::string same = RailsOn(first[way], second[way]);
    temp_.Write(kWanted, same);
    EXPECT_EQ(Step(), (FollowState{kWanted, {}, {}})) << same;
    EXPECT_EQ(temp_.Read(kInForce), same);
    for (const std::string& other : {first[way == 2 ? 0 : 2], first[3]}) {
      temp_.Write(kWanted, RailsOn(R"("pf9")", other));
      const FollowState refused = Step();
      ASSERT_EQ(refused.refused.size(), 1U) << other;
      EXPECT_NE(refused.refused[0].find("railctl drain rail0"), std::string::npos) << refused.refused[0];
      EXPECT_EQ(temp_.Read(kInForce), same);
    }
  }
}

TEST_F(FollowerTest, ARailThatComesComesAndOneThatGoesWaits) {
  Step();
  Attach("rail1");
  temp_.Write(kWanted, R"({"version": 1, "rails": [
    {"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24", "nodeBlock": 26},
    {"name": "rail2", "pf": "pf2", "subnet": "10.102.0.0/24", "nodeBlock": 26}]})");
  const FollowState waits = Step();
  ASSERT_EQ(waits.pending.size(), 1U);
  EXPECT_EQ(waits.pending[0].change, PendingWord::kRemoved);
  EXPECT_NE(InForce().FindRail("rail1"), nullptr);
  EXPECT_NE(InForce().FindRail("rail2"), nullptr);
  Detach("rail1");
  Step();
  EXPECT_EQ(InForce().FindRail("rail1"), nullptr);
}

// The next pod of the rail gets what the others have. It counts, too.
TEST_F(FollowerTest, ANewPodOfAWaitingRailIsWaitedForToo) {
  Step();
  Attach("rail0");
  temp_.Write(kWanted, TwoRailsWith(R"(, "vlan": 7)"));
  EXPECT_EQ(Step().pending.size(), 1U);
  Detach("rail0");
  Attach("rail0", "c2");
  const FollowState waits = Step();
  ASSERT_EQ(waits.pending.size(), 1U);
  EXPECT_EQ(waits.pending[0].pods, std::set<std::string>{"train/worker-c2"});
  EXPECT_EQ(InForce().FindRail("rail0")->vlan, std::nullopt);
}

TEST_F(FollowerTest, AnInvalidFabricChangesNothing) {
  Step();
  const std::string valid = temp_.Read(kInForce);
  temp_.Write(kWanted, TwoRailsWith(R"(, "vlan": 9999)"));
  const FollowState refused = Step();
  ASSERT_FALSE(refused.refused.empty());
  EXPECT_NE(refused.refused[0].find("/rails/0/vlan"), std::string::npos) << refused.refused[0];
  EXPECT_NE(follower_->refused().Get()->find("/rails/0/vlan"), std::string::npos);
  EXPECT_EQ(temp_.Read(kInForce), valid);
  EXPECT_NE(Metrics().find("railhead_fabric_refused 1"), std::string::npos) << Metrics();
  EXPECT_EQ(Step(), refused) << "the same in the next pass";
  Restart();
  EXPECT_EQ(Step(), refused) << "the same after a restart";
  temp_.Write(kWanted, TwoRailsWith(R"(, "vlan": 99)"));
  EXPECT_TRUE(Step().refused.empty());
  EXPECT_EQ(InForce().FindRail("rail0")->vlan, 99);
  EXPECT_NE(Metrics().find("railhead_fabric_refused 0"), std::string::npos) << Metrics();
}

TEST_F(FollowerTest, AnObjectOfAServiceIsCheckedToo) {
  Step();
  const std::string valid = temp_.Read(kInForce);
  std::string wrong = TwoRailsWith("");
  wrong.insert(wrong.size() - 1, R"(, "health": {"intervalSeconds": 0})");
  temp_.Write(kWanted, wrong);
  const FollowState refused = Step();
  ASSERT_FALSE(refused.refused.empty());
  EXPECT_NE(refused.refused[0].find("/health/intervalSeconds"), std::string::npos) << refused.refused[0];
  EXPECT_EQ(temp_.Read(kInForce), valid);
}

// All or nothing: the wanted rail1 would get the PF of rail0, which a pod has.
TEST_F(FollowerTest, WhatCannotBeComposedWaitsAsAWhole) {
  Step();
  const std::string valid = temp_.Read(kInForce);
  Attach("rail0");
  const std::string renamed = R"({"version": 1, "rails": [
    {"name": "other", "pf": "pf0", "subnet": "10.100.0.0/24", "nodeBlock": 26},
    {"name": "rail1", "pf": "pf1", "subnet": "10.101.0.0/24", "nodeBlock": 26, "vlan": 5}]})";
  temp_.Write(kWanted, renamed);
  const FollowState refused = Step();
  ASSERT_EQ(refused.refused.size(), 1U);
  EXPECT_NE(refused.refused[0].find("railctl drain rail0"), std::string::npos) << refused.refused[0];
  EXPECT_EQ(temp_.Read(kInForce), valid);
  Detach("rail0");
  EXPECT_TRUE(Step().refused.empty());
  EXPECT_EQ(temp_.Read(kInForce), renamed);
}

TEST_F(FollowerTest, ARestartLosesNothing) {
  Step();
  Attach("rail0");
  const std::string changed = TwoRailsWith(R"(, "vlan": 7)");
  temp_.Write(kWanted, changed);
  Restart();
  EXPECT_EQ(Step().pending.size(), 1U) << "changed while no railheadd ran";
  Restart();
  EXPECT_EQ(Step().pending.size(), 1U) << "from the composed fabric";
  Detach("rail0");
  Restart();
  EXPECT_TRUE(Step().pending.empty()) << "the pod ended while no railheadd ran";
  EXPECT_EQ(temp_.Read(kInForce), changed);
}

TEST_F(FollowerTest, TheWayBackNeedsNoDrain) {
  Step();
  Attach("rail0");
  temp_.Write(kWanted, TwoRailsWith(R"(, "vlan": 7)"));
  EXPECT_EQ(Step().pending.size(), 1U);
  temp_.Write(kWanted, TwoRailsWith(""));
  EXPECT_TRUE(Step().pending.empty());
  EXPECT_EQ(temp_.Read(kInForce), TwoRailsWith(""));
}

TEST_F(FollowerTest, AnEntryThatCannotBeReadMakesAllRailsBusy) {
  Step();
  temp_.Write("/run/railhead/attachments/c7/roce@net1.json", "{");
  temp_.Write(kWanted, TwoRailsWith(R"(, "vlan": 7)", R"(, "vlan": 8)"));
  EXPECT_EQ(Step().pending.size(), 2U);
  EXPECT_EQ(InForce().FindRail("rail1")->vlan, std::nullopt);
}

TEST_F(FollowerTest, TopologyFollowsAndIsCheckedWithTheFabric) {
  temp_.Write("/config/topology.json", "{}");
  Step();
  EXPECT_EQ(temp_.Read("/etc/railhead/topology.json"), "{}");
  temp_.Write("/config/topology.json", R"({"paths": 1})");
  temp_.Write(kWanted, TwoRailsWith(R"(, "vlan": 7)"));
  EXPECT_FALSE(Step().refused.empty());
  EXPECT_EQ(temp_.Read("/etc/railhead/topology.json"), "{}");
  EXPECT_EQ(temp_.Read(kInForce), TwoRailsWith(""));
}

// kubelet replaces the link ..data.
TEST_F(FollowerTest, AConfigMapIsFollowed) {
  namespace fs = std::filesystem;
  const fs::path config = temp_.directory() + "/config";
  fs::remove(config / "fabric.json");
  temp_.Write("/config/..1/fabric.json", TwoRailsWith(""));
  temp_.Write("/config/..2/fabric.json", TwoRailsWith(R"(, "vlan": 7)"));
  fs::create_symlink("..1", config / "..data");
  fs::create_symlink("..data/fabric.json", config / "fabric.json");
  Step();
  fs::create_symlink("..2", config / "..new");
  fs::rename(config / "..new", config / "..data");
  Step();
  EXPECT_EQ(InForce().FindRail("rail0")->vlan, 7);
}

TEST_F(FollowerTest, AMissingFileIsReported) {
  Step();
  std::filesystem::remove(temp_.directory() + kWanted);
  FollowState state = Step();
  ASSERT_EQ(state.refused.size(), 1U);
  EXPECT_NE(state.refused[0].find("no such file"), std::string::npos) << state.refused[0];
  EXPECT_EQ(temp_.Read(kInForce), TwoRailsWith("")) << "the last valid one stays";
  temp_.Write(kWanted, TwoRailsWith(R"(, "vlan": 7)"));
  std::filesystem::remove_all(temp_.directory() + "/etc/railhead");
  state = Step();
  ASSERT_EQ(state.refused.size(), 1U);
  EXPECT_NE(state.refused[0].find("/etc/railhead"), std::string::npos) << state.refused[0];
}

TEST_F(FollowerTest, AsAServiceItFollowsByItself) {
  Running<Follower> follower(std::move(follower_));
  EXPECT_TRUE(Eventually([&] { return follower->state().Get()->has_value(); }));
  EXPECT_EQ(temp_.Read(kInForce), TwoRailsWith(""));
  temp_.Write(kWanted, TwoRailsWith(R"(, "vlan": 9999)"));
  EXPECT_TRUE(Eventually([&] { return !follower->refused().Get()->empty(); }));
  temp_.Write(kWanted, TwoRailsWith(R"(, "vlan": 99)"));
  EXPECT_TRUE(Eventually([&] { return follower->refused().Get()->empty(); }));
  EXPECT_EQ(temp_.Read(kInForce), TwoRailsWith(R"(, "vlan": 99)"));
}

TEST(NoFollowerTest, WithoutADirectoryNothingIsFollowedOrSampled) {
  const TempRoot temp;
  Log log("error");
  const auto follower = RunService<Follower>(temp.root(), "", &log);
  MetricRegistry metrics;
  follower->Register(metrics);
  const std::string text = metrics.Page(ExpositionFormat::kText);
  EXPECT_NE(text.find("# TYPE railhead_fabric_refused gauge"), std::string::npos) << text;
  EXPECT_EQ(text.find("\nrailhead_fabric_refused"), std::string::npos) << text;
}

}  // namespace
}  // namespace railhead::testing

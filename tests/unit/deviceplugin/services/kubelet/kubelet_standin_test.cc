// The stand-in for kubelet itself: that it does what it says it does, and that what railheadd
// and the CNI plugin rely on is there.
#include <nlohmann/json.hpp>

#include "cni/state/kubelet_checkpoint.h"
#include "netns/base/files.h"
#include "tests/support/daemon/restart_node.h"
#include "tests/support/eventually.h"
#include "tests/support/kubelet/checkpoint_file.h"

namespace railhead::testing {
namespace {

using Clock = std::chrono::steady_clock;

class StandInTest : public RestartNode {
 protected:
  void Begin(KubeletOptions options = {}) {
    kubelet_ = MakeKubelet(std::move(options));
    ASSERT_TRUE(kubelet_->Start());
    daemon_ = RunDaemon();
    ExpectWhole(kubelet_.get(), "at the start");
  }

  std::unique_ptr<DeviceManager> kubelet_;
  std::unique_ptr<Process> daemon_;
};

TEST_F(StandInTest, WritesACheckpointThatTheCniPluginReads) {
  Begin();
  const auto given = kubelet_->Admit("uid-1", {{"app", {{kRail0, 2}, {kPlain, 1}}}});
  ASSERT_TRUE(given) << Describe(given.error());
  const auto text = ReadFile(CheckpointPath(directory_));
  ASSERT_TRUE(text && *text);
  const auto entries = ParseCheckpoint(**text, "checkpoint", "uid-1");
  ASSERT_TRUE(entries) << Describe(entries.error());
  ASSERT_EQ(entries->size(), 2U);
  for (const ContainerDevices& entry : *entries) {
    EXPECT_EQ(entry.pod_uid, "uid-1");
    EXPECT_EQ(entry.container, "app");
    EXPECT_EQ(entry.ids, given->at("app").at(entry.resource).ids);
  }
  const auto json = nlohmann::json::parse(**text);
  EXPECT_TRUE(json["Data"]["RegisteredDevices"][kRail1].is_array());
  EXPECT_TRUE(json["Checksum"].is_number());
  EXPECT_TRUE(Exists(directory_ + "/DEPRECATION"));
}

TEST_F(StandInTest, KeepsTheCapacityForFiveMinutesWithoutAPlugin) {
  auto now = Clock::now();
  KubeletOptions options;
  options.now = [&now] { return now; };
  Begin(std::move(options));
  EXPECT_EQ(daemon_->Stop(), 0);
  ASSERT_TRUE(Eventually([&] {
    const auto status = kubelet_->NodeStatus(kPlain);
    return status && status->allocatable == 0;
  }));
  EXPECT_EQ(kubelet_->NodeStatus(kPlain)->capacity, 6U);
  now += std::chrono::minutes(5);
  EXPECT_TRUE(kubelet_->NodeStatus(kPlain));
  now += std::chrono::seconds(1);
  EXPECT_FALSE(kubelet_->NodeStatus(kPlain));
}

TEST_F(StandInTest, RefusesAPodThatHadDevicesUntilTheyAreBack) {
  Begin();
  const std::vector<PodContainer> containers = {{"app", {{kRail0, 1}}}};
  ASSERT_TRUE(kubelet_->Admit("uid-1", containers));
  EXPECT_EQ(daemon_->Stop(), 0);
  kubelet_->Stop();
  ASSERT_TRUE(kubelet_->Start());
  EXPECT_EQ(kubelet_->NodeStatus(kRail0)->capacity, 0U) << "known from the checkpoint";
  const auto refused = kubelet_->Admit("uid-1", containers);
  ASSERT_FALSE(refused);
  EXPECT_NE(Describe(refused.error()).find("UnexpectedAdmissionError"), std::string::npos);
  EXPECT_NE(Describe(refused.error()).find("no healthy devices present"), std::string::npos);
  daemon_ = RunDaemon();
  ExpectWhole(kubelet_.get(), "with railheadd again");
  EXPECT_TRUE(kubelet_->Admit("uid-1", containers));
}

TEST_F(StandInTest, GivesAnInitContainersDevicesToTheAppContainer) {
  Begin();
  const auto given = kubelet_->Admit("uid-1", {{"app", {{kRail0, 2}}}, {"first", {{kRail0, 1}}, true}});
  ASSERT_TRUE(given) << Describe(given.error());
  const auto& first = given->at("first").at(kRail0).ids;
  const auto& app = given->at("app").at(kRail0).ids;
  ASSERT_EQ(app.size(), 2U);
  EXPECT_TRUE(app[0] == first[0] || app[1] == first[0]);
}

TEST_F(StandInTest, AsksForDevicesOfTheChosenNodeOnly) {
  KubeletOptions options;
  options.affinity = {0};
  std::vector<std::string> asked;
  options.record = [&asked](const TraceEvent& event) {
    if (event.call != "GetPreferredAllocation") return;
    asked = IdsIn(Field((*Field(event.request, "containerRequests"))[0], "availableDeviceIDs"));
  };
  Begin(std::move(options));
  ASSERT_TRUE(kubelet_->Allocate(kRail0, 1));
  EXPECT_EQ(asked.size(), 4U);
  ASSERT_TRUE(kubelet_->Allocate(kRail1, 1)) << "rail1 is on node 1";
  EXPECT_EQ(asked.size(), 4U) << "all, as none is on the chosen node";
}

TEST_F(StandInTest, TakesACorruptCheckpointForAnError) {
  ASSERT_TRUE(
      WriteCheckpoint(directory_, {{{"uid", "c", "a.io/b", {{0, {"x"}}}, "AA=="}}, {{"a.io/b", {"x"}}}}));
  const auto good = ReadCheckpointFile(directory_);
  ASSERT_TRUE(good && *good);
  EXPECT_EQ((*good)->pods[0].Ids(), std::vector<std::string>{"x"});
  std::string text = ReadFile(CheckpointPath(directory_)).value().value();
  text.replace(text.find("uid"), 3, "iud");
  ASSERT_TRUE(WriteInPlace(CheckpointPath(directory_), text));
  EXPECT_FALSE(ReadCheckpointFile(directory_));
}

TEST_F(StandInTest, ASlowKubeletIsWaitedFor) {
  KubeletOptions options;
  options.register_delay = std::chrono::seconds(9);
  options.list_delay = std::chrono::milliseconds(300);
  // One after the other, so one resource is enough to wait for.
  sysfs_.Write("/etc/railhead/fabric.json", R"({"version": 1, "rails": [{"name": "rail0", "pf": "pf0"}],
      "pools": [{"resource": "a.io/rail0", "rails": ["rail0"]}]})");
  kubelet_ = MakeKubelet(std::move(options));
  ASSERT_TRUE(kubelet_->Start());
  daemon_ = RunDaemon();
  ASSERT_TRUE(kubelet_->Devices(kRail0, 4, Soon())) << daemon_->err();
  EXPECT_EQ(kubelet_->Registrations(kRail0), 1) << "nine seconds are no reason to ask again";
  EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
}

TEST_F(StandInTest, ADeafKubeletHoldsNobodyUp) {
  KubeletOptions options;
  options.deaf = true;
  kubelet_ = MakeKubelet(std::move(options));
  ASSERT_TRUE(kubelet_->Start());
  daemon_ = RunDaemon();
  for (const auto& [resource, ids] : devices_) {
    ASSERT_TRUE(Eventually([&, &name = resource] { return kubelet_->OpenStreams(name) == 1; }))
        << daemon_->err();
  }
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(Logs(*daemon_, "discovery requested"));
  EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
  EXPECT_EQ(OurSockets(), 0U);
}

}  // namespace
}  // namespace railhead::testing

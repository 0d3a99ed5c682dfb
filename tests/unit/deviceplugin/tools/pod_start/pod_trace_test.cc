// What a node with two rails knows of the start of a pod, source by source.
#include "deviceplugin/tools/pod_start/pod_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cni/state/allocation.h"
#include "netns/base/node.h"
#include "netns/base/state_folder.h"
#include "netns/linux_kernel.h"
#include "tests/support/daemon/two_rails.h"

namespace railhead::testing {
namespace {

using pod_start::PodTrace;
using pod_start::RunningCall;

constexpr const char* kTracedPod = "train/worker-0";
constexpr const char* kResource = "railhead.io/roce";

class PodTraceTest : public TwoRails {
 protected:
  PodTraceTest() : TwoRails(2) {}
  void SetUp() override {
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "1111-2222\n");
    sysfs_.Write(
        "/etc/railhead/fabric.json",
        TwoRailFabric(R"(, "pools": [{"resource": "railhead.io/roce", "rails": ["rail0", "rail1"]}])"));
    ASSERT_TRUE(MakeStateFolder(root_, root_.Path("/run/railhead")));
  }
  PodTrace Read(const std::string& which) {
    LinuxKernel kernel(root_);
    auto trace = pod_start::ReadPodTrace(root_, kernel, which);
    if (!trace) ADD_FAILURE() << Describe(trace.error());
    return trace ? *std::move(trace) : PodTrace{};
  }
  // kubelet's checkpoint: one device for each pod, by UID.
  void Checkpoint(const std::vector<std::pair<std::string, std::string>>& devices) {
    nlohmann::json entries = nlohmann::json::array();
    for (const auto& [uid, id] : devices) {
      entries.push_back({{"PodUID", uid},
                         {"ContainerName", "main"},
                         {"ResourceName", kResource},
                         {"DeviceIDs", {{"0", {id}}}}});
    }
    sysfs_.Write("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
                 nlohmann::json{{"Data", {{"PodDeviceEntries", entries}}}}.dump());
  }
  void Record(const std::string& id, const std::string& resource = kResource) {
    ASSERT_TRUE(WriteAllocation(root_, {resource, id, {id}, 1}));
  }
  void KubeletHas(const std::string& uid) { sysfs_.Write("/var/lib/kubelet/pods/" + uid + "/etc-hosts", ""); }
  JournalEntry Attach(const std::string& container, const std::string& id, const std::string& uid,
                      Phase phase = Phase::kDone) {
    JournalEntry entry;
    entry.key = {"rail0", container, "net1"};
    entry.boot_id = *BootId(root_);
    entry.phase = phase;
    entry.since = 1'800'000'000;
    entry.netns = "/nowhere/" + container;
    entry.cni_args = {{"K8S_POD_NAMESPACE", "train"}, {"K8S_POD_NAME", "worker-0"}, {"K8S_POD_UID", uid}};
    AttachedDevice device;
    device.device = id;
    device.pf = kPf0;
    device.pod_name = "net1";
    entry.devices.push_back(device);
    EXPECT_TRUE(Journal(root_).Write(entry));
    return entry;
  }
  void Fail(const std::string& container, const std::string& uid, const std::string& error) {
    AttachTiming timing{{"rail0", container, "net1"}, 1, error, {}};
    timing.pod = kTracedPod;
    timing.pod_uid = uid;
    timing.code = 11;
    LogAttachTiming(root_, timing);
  }
  void Process(int pid, const std::string& command, const std::string& container, const std::string& name) {
    const std::string process = "/proc/" + std::to_string(pid);
    const std::vector<std::string> variables = {
        "CNI_COMMAND=" + command, "CNI_CONTAINERID=" + container, "CNI_NETNS=/nowhere/" + container,
        "CNI_IFNAME=net1", "CNI_ARGS=K8S_POD_NAMESPACE=train;K8S_POD_NAME=worker-0;K8S_POD_UID=uid-1"};
    std::string environment;
    for (const std::string& variable : variables) environment.append(variable).push_back('\0');
    sysfs_.Write(process + "/comm", name + "\n");
    sysfs_.Write(process + "/environ", environment);
    // It started 30 s ago.
    const long tick = ::sysconf(_SC_CLK_TCK);
    sysfs_.Write("/proc/uptime", "1030.55 4000.00\n");
    sysfs_.Write(process + "/stat", std::to_string(pid) +
                                        " (rail) head) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " +
                                        std::to_string(1000 * tick) + " 0 0\n");
  }
};

TEST_F(PodTraceTest, NothingNamesThePod) {
  const PodTrace trace = Read(kTracedPod);
  EXPECT_FALSE(trace.known);
  EXPECT_EQ(trace.pod, kTracedPod);
  EXPECT_EQ(trace.uid, "");
  ASSERT_EQ(trace.notes.size(), 1U) << "railheadd has written no health";
}

TEST_F(PodTraceTest, KubeletsLogFolderNamesThePodOfAUid) {
  sysfs_.Write("/var/log/pods/train_worker-0_uid-1/.keep", "");
  KubeletHas("uid-1");
  Checkpoint({{"uid-1", vfs0_[0]}, {"uid-2", vfs0_[1]}});
  Record(vfs0_[0]);
  Record(vfs0_[1]);
  const PodTrace trace = Read(kTracedPod);
  EXPECT_TRUE(trace.known);
  EXPECT_FALSE(trace.removed);
  EXPECT_EQ(trace.uid, "uid-1");
  ASSERT_EQ(trace.allocated.size(), 1U);
  EXPECT_EQ(trace.allocated[0].id, vfs0_[0]);
  EXPECT_EQ(trace.allocated[0].container, "main");
  EXPECT_TRUE(trace.allocated[0].since) << "the time of the allocation record";
  EXPECT_FALSE(trace.allocated[0].holder);
  EXPECT_TRUE(trace.resources.empty()) << "its devices say more";
  EXPECT_EQ(Read("uid-1").pod, kTracedPod);
}

TEST_F(PodTraceTest, DevicesOfOtherPluginsAreNotOurs) {
  KubeletHas("uid-1");
  Checkpoint({{"uid-1", vfs0_[0]}, {"uid-1", vfs0_[1]}});
  Record(vfs0_[1], "railhead.io/another");
  const PodTrace trace = Read("uid-1");
  EXPECT_TRUE(trace.known);
  EXPECT_TRUE(trace.allocated.empty());
  EXPECT_FALSE(trace.resources.empty());
}

TEST_F(PodTraceTest, ResourcesWithTheirHolders) {
  KubeletHas("uid-2");
  Checkpoint({{"uid-2", vfs0_[0]}, {"uid-gone", vfs0_[1]}});
  Attach("c2", vfs0_[0], "uid-2");
  const health::HealthReason cut{health::HealthRule::kLink, vfs1_[0], "", "no carrier", {}};
  ASSERT_TRUE(health::kHealthFile.Write(
      root_, {{{vfs1_[0], true, kPf1, "pf1", false, std::chrono::system_clock::now(), {cut}}}, {}}));
  const PodTrace trace = Read("other/pod");
  ASSERT_EQ(trace.resources.size(), 1U) << (trace.notes.empty() ? "" : trace.notes[0]);
  const pod_start::ResourceUse& use = trace.resources[0];
  EXPECT_EQ(use.resource, kResource);
  EXPECT_EQ(use.devices, 4U);
  EXPECT_EQ(use.in_use, 1U) << "kubelet has dropped uid-gone";
  EXPECT_EQ(use.holders, (std::vector<std::string>{vfs0_[0] + ": pod train/worker-0"}));
  EXPECT_EQ(use.unhealthy, (std::vector<std::string>{vfs1_[0] + ": link: no carrier"}));
  EXPECT_EQ(use.Free(), 2U);
}

TEST_F(PodTraceTest, AnotherPodHasTheDevice) {
  KubeletHas("uid-1");
  Checkpoint({{"uid-1", vfs0_[0]}});
  Record(vfs0_[0]);
  Attach("c9", vfs0_[0], "uid-9");
  const PodTrace trace = Read("uid-1");
  ASSERT_EQ(trace.allocated.size(), 1U);
  ASSERT_TRUE(trace.allocated[0].holder);
  EXPECT_EQ(trace.allocated[0].holder->container_id, "c9");
  EXPECT_FALSE(trace.allocated[0].holder->of_pod);
  EXPECT_TRUE(trace.attachments.empty());
}

TEST_F(PodTraceTest, TheAttachmentByPodUidAndContainer) {
  KubeletHas("uid-1");
  Checkpoint({{"uid-1", vfs0_[0]}});
  Record(vfs0_[0]);
  Attach("c1abc", vfs0_[0], "uid-1");
  for (const char* which : {kTracedPod, "uid-1", "c1abc", "c1"}) {
    const PodTrace trace = Read(which);
    EXPECT_EQ(trace.pod, kTracedPod) << which;
    EXPECT_EQ(trace.uid, "uid-1") << which;
    ASSERT_EQ(trace.attachments.size(), 1U) << which;
    ASSERT_EQ(trace.allocated.size(), 1U) << which;
    EXPECT_TRUE(trace.allocated[0].holder && trace.allocated[0].holder->of_pod) << which;
    EXPECT_FALSE(trace.attachments[0].netns_gone) << "without its folder it may only be hidden";
  }
}

TEST_F(PodTraceTest, ABeginningOfSeveralContainersIsRefused) {
  Attach("c1abc", vfs0_[0], "uid-1");
  Attach("c1abd", vfs0_[1], "uid-2");
  LinuxKernel kernel(root_);
  const auto trace = pod_start::ReadPodTrace(root_, kernel, "c1ab");
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(trace.error().hint, "one of c1abc, c1abd");
}

TEST_F(PodTraceTest, ANamespaceThatIsGone) {
  JournalEntry entry = Attach("c1", vfs0_[0], "uid-1");
  entry.netns = sysfs_.directory() + "/no-such-netns";
  ASSERT_TRUE(Journal(root_).Write(entry));
  const PodTrace trace = Read(kTracedPod);
  ASSERT_EQ(trace.attachments.size(), 1U);
  EXPECT_TRUE(trace.attachments[0].netns_gone);
}

TEST_F(PodTraceTest, AnUnfinishedAddIsLockedWhileItRuns) {
  Attach("c1", vfs0_[0], "uid-1", Phase::kPlanned);
  EXPECT_FALSE(Read(kTracedPod).attachments.at(0).locked);
  const auto lock = FileLock::Acquire(root_.Path("/run/railhead/locks/" + vfs0_[0] + ".lock"),
                                      std::chrono::milliseconds(0));
  ASSERT_TRUE(lock) << Describe(lock.error());
  EXPECT_TRUE(Read(kTracedPod).attachments.at(0).locked);
}

TEST_F(PodTraceTest, FailuresOfThePodThatRunsNow) {
  KubeletHas("uid-new");
  Fail("c1", "uid-old", "old");
  Fail("c2", "uid-new", "first");
  Fail("c3", "uid-new", "second");
  LogAttachTiming(root_, {{"rail0", "c4", "net1"}, 1, "", {}});
  const PodTrace trace = Read(kTracedPod);
  EXPECT_EQ(trace.uid, "uid-new") << "a StatefulSet gives a pod's name again";
  ASSERT_EQ(trace.failures.size(), 2U);
  EXPECT_EQ(trace.failures[0].error, "first");
  EXPECT_EQ(trace.failures[1].error, "second");
  EXPECT_EQ(Read("uid-old").failures.size(), 1U);
}

TEST_F(PodTraceTest, ARunningAddIsAProcess) {
  Process(4711, "ADD", "c1", "railhead");
  Process(4712, "ADD", "c1", "other-plugin");
  Process(4713, "CHECK", "c1", "railhead");
  const PodTrace trace = Read(kTracedPod);
  EXPECT_TRUE(trace.known);
  EXPECT_EQ(trace.uid, "uid-1");
  ASSERT_EQ(trace.running.size(), 1U);
  const RunningCall& call = trace.running[0];
  EXPECT_EQ(call.command, "ADD");
  EXPECT_EQ(call.container_id, "c1");
  EXPECT_EQ(call.ifname, "net1");
  ASSERT_TRUE(call.since);
  const auto age = std::chrono::system_clock::now() - *call.since;
  EXPECT_GE(age, std::chrono::seconds(29));
  EXPECT_LT(age, std::chrono::minutes(10));
}

// It resends announcements.
TEST_F(PodTraceTest, AProcessWhoseAddIsDoneDoesNotRunAnAdd) {
  Process(4711, "ADD", "c1", "railhead");
  Attach("c1", vfs0_[0], "uid-1");
  EXPECT_TRUE(Read(kTracedPod).running.empty());
}

TEST_F(PodTraceTest, AnUnreadableEntryOfItsDevice) {
  KubeletHas("uid-1");
  Checkpoint({{"uid-1", vfs0_[0]}});
  Record(vfs0_[0]);
  Attach("c1", vfs0_[0], "uid-1");
  sysfs_.Write("/run/railhead/attachments/c1/rail0@net1.json", "{");
  const PodTrace trace = Read("uid-1");
  ASSERT_EQ(trace.unreadable.size(), 1U);
  EXPECT_TRUE(trace.attachments.empty());
}

}  // namespace
}  // namespace railhead::testing

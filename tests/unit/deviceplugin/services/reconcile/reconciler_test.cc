// Attachments whose DEL never came.
#include "deviceplugin/services/reconcile/reconciler.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cni/state/paths.h"
#include "netns/base/state_folder.h"
#include "netns/json/record_io.h"
#include "tests/support/daemon/reconciler_fixture.h"
#include "tests/support/eventually.h"

namespace railhead::testing {
namespace {

using std::chrono::seconds;

using ReconcilerTest = ReconcilerFixture;

TEST_F(ReconcilerTest, WhenAllIsWellNothingIsTouchedAndNoLockTaken) {
  ASSERT_TRUE(Add(AllRails()));
  ASSERT_TRUE(Add({.network = "one", .container = "c2", .config = Usual(1)}));
  Remove("/run/railhead/locks");
  const auto before = World();
  kernel_.ClearLog();
  const auto report = Once();
  EXPECT_EQ(ListActions(report), "");
  EXPECT_EQ(report.attachments, 2U);
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_FALSE(IsThere("/run/railhead/locks")) << "a lock was made to be taken";
  // Two namespaces were looked at, and nothing else was asked of the kernel.
  EXPECT_EQ(kernel_.Log().find("Route"), std::string::npos) << kernel_.Log();
  EXPECT_EQ(kernel_.Log().find("List"), std::string::npos) << kernel_.Log();
}

TEST_F(ReconcilerTest, AHundredAttachmentsCostAHundredLooksAtANamespace) {
  ASSERT_TRUE(Add(AllRails()));
  const Journal journal(sysfs_.root());
  JournalEntry entry = *journal.Find({"rails", "c1", "net1"}).value();
  for (int n = 1; n < 100; ++n) {
    entry.key.container_id = "c1-" + std::to_string(n);
    for (std::size_t i = 0; i < entry.devices.size(); ++i)
      entry.devices[i].device = "0000:f" + std::to_string(i) + ":00." + std::to_string(n);
    ASSERT_TRUE(journal.Write(entry));
  }
  reconcile::Reconciler reconciler(sysfs_.root(), kernel_);
  EXPECT_EQ(ListActions(reconciler.Run()), "");
  const int first = kernel_.calls();
  const auto begun = Clock::now();
  const auto report = reconciler.Run();
  const std::chrono::duration<double, std::milli> took = Clock::now() - begun;
  EXPECT_EQ(report.attachments, 100U);
  EXPECT_EQ(ListActions(report), "");
  EXPECT_EQ(kernel_.calls() - first, 100);
  RecordProperty("milliseconds", std::to_string(took.count()));
}

TEST_F(ReconcilerTest, AnEmptyNodeIsWell) {
  EXPECT_EQ(Did(), "");
  EXPECT_FALSE(IsThere("/run/railhead")) << "nothing was made";
}

TEST_F(ReconcilerTest, AnAddThatIsAtWorkIsLeftAlone) {
  const Call call = AllRails();
  ASSERT_TRUE(Kill(call, 20));
  const auto busy = FileLock::Acquire(paths::Lock(sysfs_.root(), Bdf(1)), seconds(0));
  ASSERT_TRUE(busy) << "the test holds what the ADD's IPAM plugin may still hold";
  const auto world = World();
  EXPECT_EQ(Did(), "");
  EXPECT_EQ(ChangedSince(world), "");
}

TEST_F(ReconcilerTest, AFailedUndoIsCompleted) {
  const auto before = World();
  kernel_.FailEvery("MoveLink", EIO, "pf1");
  kernel_.FailEvery("SetVf", EIO);
  const auto added = Add(AllRails());
  kernel_.StopFailing();
  ASSERT_FALSE(added);
  (void)Did();
  EXPECT_EQ(ChangedSince(before), "");
}

// Its namespace still exists, as if the runtime could not remove the pod's sandbox.
TEST_F(ReconcilerTest, SettlesWhatAnIpamPluginHasNotReleased) {
  const auto before = World();
  const Call call = AllRails();
  ASSERT_TRUE(Add(call));
  FailIpam("DEL");
  EXPECT_FALSE(Del(call));
  EXPECT_TRUE(Once().Failed());
  EXPECT_NE(HeldAddresses(), "");
  FailIpam("");
  EXPECT_EQ(Did(), "attachment c1/rails@net1: its IPAM plugin has not released its addresses\n");
  EXPECT_EQ(HeldAddresses(), "");
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(ReconcilerTest, ANamespaceThatIsGone) {
  const auto before = World();
  const std::string pod = AddTo("pod2", AllRails());
  EXPECT_EQ(Did(), "") << "the pod lives";
  kernel_.RemoveNamespace(pod);
  EXPECT_EQ(Did(), "attachment c1/rails@net1: its network namespace is gone\n");
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_EQ(HeldAddresses(), "");
}

// A pod can give its devices to another pod. When it has ended, nobody finds them. Killed anywhere, a later
// pass completes it. A pass that a busy machine holds up beyond its limit takes nothing back.
TEST_F(ReconcilerTest, DevicesThatAPodGaveToAnotherComeBack) {
  const std::string other = MakePod("other");
  const auto before = World();
  reconcile::ReconcileOptions options = reconcile::SinglePass();
  options.restore_timeout = std::chrono::milliseconds(20);
  const auto complete = [&] {
    (void)reconcile::Reconciler(sysfs_.root(), kernel_, options).Run();
    return Journal(sysfs_.root()).Scan()->entries.empty();
  };
  bool killed = true;
  for (int nth = 1; killed; ++nth) {
    SCOPED_TRACE("killed at call " + std::to_string(nth));
    const std::string pod = AddTo("pod2", AllRails());
    const JournalEntry entry = *Journal(sysfs_.root()).Find({"rails", "c1", "net1"}).value();
    for (const AttachedDevice& device : entry.devices) {
      FakeNetdev* netdev = kernel_.state().OfFunction(device.device);
      ASSERT_EQ(kernel_.state().Move(*netdev, other, "taken" + netdev->link.name, {}), 0);
    }
    kernel_.RemoveNamespace(pod);
    killed = KillPass(nth, 1, options);
    ASSERT_TRUE(Eventually(complete));
    ASSERT_EQ(ChangedSince(before), "");
    EXPECT_EQ(HeldAddresses(), "");
  }
}

TEST_F(ReconcilerTest, AnotherNamespaceAtItsPath) {
  const std::string pod = AddTo("pod2", AllRails());
  kernel_.RemoveNamespace(pod);
  ASSERT_EQ(MakePod("pod2"), pod);
  EXPECT_EQ(Did(), "attachment c1/rails@net1: its network namespace is gone\n");
  EXPECT_EQ(OurLinks(pod), std::vector<std::string>{});
  EXPECT_TRUE(Journal(sysfs_.root()).HeldDevices().empty());
}

TEST_F(ReconcilerTest, AGoneNamespaceWhoseDelIsAtWorkIsLeftAlone) {
  const std::string pod = AddTo("pod2", AllRails());
  kernel_.RemoveNamespace(pod);
  const auto busy = FileLock::Acquire(paths::Lock(sysfs_.root(), Bdf(2)), seconds(0));
  ASSERT_TRUE(busy);
  EXPECT_EQ(Did(), "");
  EXPECT_TRUE(IsThere(EntryOf(AllRails())));
}

// The other pods of the node are not affected, whatever happens to one.
TEST_F(ReconcilerTest, LivePodsAreNotTouched) {
  Call live = AllRails(1, "c-live");
  ASSERT_TRUE(Add(live));
  live.command = "CHECK";
  const std::string pod = AddTo("pod2", AllRails());
  kernel_.RemoveNamespace(pod);
  EXPECT_EQ(Did(), "attachment c1/rails@net1: its network namespace is gone\n");
  const auto checked = Check(live);
  EXPECT_TRUE(checked) << Describe(checked.error());
}

// A device with a user-space driver stays on the host, so only the namespace's path shows that the pod is
// gone.
TEST_F(ReconcilerTest, WhatCannotBeSeenIsNotTakenForGone) {
  kernel_.state().Unbind(*kernel_.state().Function(Bdf(0)));
  kernel_.Sync();
  sysfs_.Link("/sys/bus/pci/devices/" + Bdf(0) + "/driver", "/sys/bus/pci/drivers/vfio-pci");
  const std::string directory = Path("/hidden");
  std::filesystem::create_directories(directory);
  const std::string pod = MakePod("hidden/pod");
  Call call{.network = "user", .netns = pod, .config = Device(0) + R"(,"vlan":300,"ipam":{})"};
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  ASSERT_EQ(Vf(0).vlan->id, 300);
  std::filesystem::rename(directory, Path("/elsewhere"));
  EXPECT_EQ(Did(), "") << "the directory of namespaces is not mounted here";
  EXPECT_EQ(Vf(0).vlan->id, 300);
  std::filesystem::rename(Path("/elsewhere"), directory);
  kernel_.RemoveNamespace(pod);
  EXPECT_EQ(Did(), "attachment c1/user@net1: its network namespace is gone\n");
  EXPECT_EQ(Vf(0).vlan->id, 0);
}

// Without mount propagation a container sees the file of each namespace that the host makes, but not the
// namespace.
TEST_F(ReconcilerTest, ALivingPodBehindAPrivateMountKeepsItsNics) {
  for (const bool done : {true, false}) {
    for (const char* tags : {"", " shared:5", " master:5"}) {
      SCOPED_TRACE(std::string(done ? "done" : "planned") + tags);
      const std::string pod = AddTo("pod2", AllRails());
      if (!done) {
        std::string text = File(EntryOf(AllRails()));
        text.replace(text.find("\"done\""), 6, "\"planned\"");
        WriteFileAt(Path(EntryOf(AllRails())), text);
      }
      sysfs_.Write("/proc/self/mountinfo",
                   "1 0 0:1 / " + sysfs_.directory() + " rw" + tags + " - tmpfs tmpfs rw\n");
      const auto before = World();
      std::filesystem::rename(pod, pod + ".host");
      WriteFileAt(pod, "");
      if (*tags == '\0') {
        EXPECT_EQ(Did(), "");
        EXPECT_EQ(ChangedSince(before), "");
        std::filesystem::rename(pod + ".host", pod);
        EXPECT_EQ(ChangedSince(before), "");
        kernel_.RemoveNamespace(pod);
      } else {
        std::filesystem::rename(pod + ".host", pod);
        kernel_.RemoveNamespace(pod);
        WriteFileAt(pod, "");  // a killed runtime does not delete the file
      }
      EXPECT_NE(Did(), "") << "it is gone, and is seen to be";
      std::filesystem::remove(pod);
    }
  }
}

class GonePodTest : public ReconcilerTest {
 protected:
  // Here kubelet has given nothing to anybody.
  GonePodTest() { permissions_ = R"(,"devices":"any")"; }

  std::string Pass(int second) { return ListActions(reconciler_.Run(start_ + seconds(second))); }

  const Clock::time_point start_ = Clock::now();
  reconcile::Reconciler reconciler_{sysfs_.root(), kernel_};
  static constexpr const char* kEnded = "attachment c1/rails@net1: its pod is gone\n";
};

TEST_F(GonePodTest, IsEndedInTheThirdPassThatFindsItGoneAfterAMinute) {
  KubeletHas("uid-other");
  const auto before = World();
  ASSERT_TRUE(Add(OfPod("uid-1")));
  EXPECT_EQ(Pass(0) + Pass(30), "");
  EXPECT_EQ(Pass(59), "") << "too early";
  EXPECT_EQ(Pass(60), kEnded);
  EXPECT_EQ(ChangedSince(before), "");
}

// The runtime is making the pod's sandbox. At the same time the machine stands still, for any length of time.
TEST_F(GonePodTest, AMachineThatStoodStillTakesNoNicsAway) {
  KubeletHas("uid-other");
  ASSERT_TRUE(Add(OfPod("uid-1")));
  EXPECT_EQ(Pass(0) + Pass(3600), "");
  kernel_.SetHasProcesses(pod_, true);
  EXPECT_EQ(Pass(3630) + Pass(3660) + Pass(3690), "");
}

TEST_F(GonePodTest, OnePassAloneDoesNotEndIt) {
  KubeletHas("uid-other");
  ASSERT_TRUE(Add(OfPod("uid-1")));
  EXPECT_EQ(Did(), "");
  EXPECT_EQ(Did(), "");
}

TEST_F(GonePodTest, AProcessInTheNamespaceKeepsIt) {
  KubeletHas("uid-other");
  ASSERT_TRUE(Add(OfPod("uid-1")));
  kernel_.SetHasProcesses(pod_, true);
  EXPECT_EQ(Pass(0) + Pass(60), "");
  // From here on the pod counts as gone for the first time.
  kernel_.SetHasProcesses(pod_, false);
  EXPECT_EQ(Pass(90), "");
  kernel_.SetHasProcesses(pod_, true);
  EXPECT_EQ(Pass(120), "");
  kernel_.SetHasProcesses(pod_, false);
  EXPECT_EQ(Pass(150) + Pass(180), "") << "it was not gone all the time";
  EXPECT_EQ(Pass(210), kEnded);
}

TEST_F(GonePodTest, ThatKubeletKnowsIsKept) {
  KubeletHas("uid-1");
  ASSERT_TRUE(Add(OfPod("uid-1")));
  EXPECT_EQ(Pass(0) + Pass(60) + Pass(120), "");
}

TEST_F(GonePodTest, WithoutKubeletNothingIsKnown) {
  ASSERT_TRUE(Add(OfPod("uid-1")));
  EXPECT_EQ(Pass(0) + Pass(60) + Pass(120), "");
}

TEST_F(GonePodTest, WithoutAUidNothingIsKnown) {
  KubeletHas("uid-other");
  for (const char* args : {"", "K8S_POD_UID="}) {
    Call call = AllRails();
    call.args = args;
    ASSERT_TRUE(Add(call)) << args;
    EXPECT_EQ(Pass(0) + Pass(60) + Pass(120), "") << args;
    ASSERT_TRUE(Del(call));
  }
}

// ADD does not accept such a UID. But any program may have written an entry.
TEST_F(GonePodTest, AUidThatIsAPathSaysNothing) {
  KubeletHas("uid-other");
  for (const std::string uid : {"..", "../x", "/x"}) {
    const Call call = OfPod("uid-of-it");
    ASSERT_TRUE(Add(call)) << uid;
    const std::string path = Path(EntryOf(call));
    std::string entry = ReadFileAt(path);
    const auto at = entry.find("uid-of-it");
    ASSERT_NE(at, std::string::npos) << entry;
    WriteFileAt(path, entry.replace(at, std::string("uid-of-it").size(), uid));
    EXPECT_EQ(Pass(0) + Pass(60) + Pass(120), "") << uid;
    ASSERT_TRUE(Del(call)) << uid;
  }
}

TEST_F(ReconcilerTest, AnEarlierBootLeavesNothing) {
  const std::string pod = AddTo("pod2", AllRails());
  kernel_.RemoveNamespace(pod);
  WriteFileAt(Path("/proc/sys/kernel/random/boot_id"), "3333-4444\n");
  Call now = AllRails(1, "c-now");
  ASSERT_TRUE(Add(now));
  const std::string actions = Did();
  EXPECT_NE(actions.find("attachment c1/rails@net1: is of an earlier boot\n"), std::string::npos) << actions;
  EXPECT_FALSE(IsThere("/run/railhead/attachments/c1"));
  EXPECT_FALSE(IsThere("/run/railhead/nccl/c1"));
  EXPECT_FALSE(IsThere("/run/cdi/railhead-" + Bdf(0) + ".json"));
  EXPECT_EQ(HeldAddresses().find("c1@"), std::string::npos) << "its IPAM plugin was told";
  EXPECT_TRUE(Check(now));
  EXPECT_EQ(Did(), "");
}

TEST_F(ReconcilerTest, ADamagedEntryIsReportedAndNothingOfItTouched) {
  const Call call = AllRails();
  ASSERT_TRUE(Add(call));
  (void)AddTo("pod2", AllRails(1, "c-sound"));
  const std::string text = File(EntryOf(call));
  const auto before = World();
  WriteFileAt(Path(EntryOf(call)), text.substr(0, text.size() / 2));
  const auto report = Once();
  EXPECT_TRUE(report.Failed());
  ASSERT_EQ(report.actions.size(), 1U) << ListActions(report);
  EXPECT_NE(ListActions(report).find(EntryOf(call)), std::string::npos) << ListActions(report);
  EXPECT_EQ(ChangedSince(before), "");
  WriteFileAt(Path(EntryOf(call)), text);
  EXPECT_TRUE(Check(call));
}

TEST_F(ReconcilerTest, TheReportAsJson) {
  reconcile::ReconcileReport report;
  report.attachments = 3;
  report.actions.push_back({"attachment", "c1/n@net1", "its ADD was killed", std::nullopt});
  report.actions.push_back({"address", "10.0.0.1", "no attachment has it",
                            Error{ErrorCode::kIo, "opening x: broken", "mend it", 0}});
  const auto json = ToJson(report);
  EXPECT_EQ(json["attachments"], 3);
  EXPECT_EQ(json["actions"][0]["name"], "c1/n@net1");
  EXPECT_FALSE(json["actions"][0].contains("error"));
  EXPECT_EQ(json["actions"][1]["error"], "opening x: broken");
  EXPECT_EQ(json["actions"][1]["code"], "io");
  EXPECT_EQ(json["actions"][1]["hint"], "mend it");
  EXPECT_TRUE(report.Failed());
}

}  // namespace
}  // namespace railhead::testing

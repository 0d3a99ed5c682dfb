// `railctl why` and `railctl explain` as processes: what they print, and their exit statuses.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cni/state/allocation.h"
#include "cni/state/attach_log.h"
#include "cni/state/journal.h"
#include "deviceplugin/services/health/state_file.h"
#include "netns/base/node.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"
#include "tests/support/daemon/two_rails.h"
#include "tests/support/process.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

class WhyCommandTest : public TwoRails {
 protected:
  WhyCommandTest() : TwoRails(1) {}
  void SetUp() override {
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "1111-2222\n");
    sysfs_.Write("/etc/railhead/fabric.json", TwoRailFabric());
    ASSERT_TRUE(MakeStateFolder(root_, root_.Path("/run/railhead")));
    ASSERT_TRUE(health::kHealthFile.Write(
        root_, {{{kPf0, false, kPf0, "pf0", true, std::chrono::system_clock::now(), {}}}, {}}));
  }
  ProcessOutput Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RAILCTL);
    return RunProcess(arguments, {{"RAILHEAD_ROOT", sysfs_.directory()}}, "");
  }
  // kubelet has allocated the VF of pf0 to pod train/worker-0.
  void Allocate() {
    sysfs_.Write("/var/log/pods/train_worker-0_uid-1/.keep", "");
    sysfs_.Write("/var/lib/kubelet/pods/uid-1/etc-hosts", "");
    const Json entry = {{"PodUID", "uid-1"},
                        {"ContainerName", "main"},
                        {"ResourceName", "railhead.io/roce"},
                        {"DeviceIDs", {{"0", {vfs0_[0]}}}}};
    sysfs_.Write("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
                 Json{{"Data", {{"PodDeviceEntries", Json::array({entry})}}}}.dump());
    ASSERT_TRUE(WriteAllocation(root_, {"railhead.io/roce", vfs0_[0], {vfs0_[0]}, 1}));
  }
  void Attach() {
    JournalEntry entry;
    entry.key = {"rail0", "c1", "net1"};
    entry.boot_id = *BootId(root_);
    entry.phase = Phase::kDone;
    entry.since = 1'700'000'000;
    entry.netns = "/nowhere/c1";
    entry.cni_args = {{"K8S_POD_NAMESPACE", "train"}, {"K8S_POD_NAME", "worker-0"}, {"K8S_POD_UID", "uid-1"}};
    AttachedDevice device;
    device.device = vfs0_[0];
    device.pf = kPf0;
    entry.devices.push_back(device);
    ASSERT_TRUE(Journal(root_).Write(entry));
  }
};

TEST_F(WhyCommandTest, AnUnknownPod) {
  const auto why = Run({"why", "train/worker-0"});
  EXPECT_EQ(why.status, 1);
  EXPECT_TRUE(why.out.starts_with("pod train/worker-0: unknown\n  Nothing on this node names the pod.\n"))
      << why.out << why.err;
  EXPECT_NE(why.out.find("RESOURCE"), std::string::npos) << why.out;
  EXPECT_EQ(Run({"why"}).status, 2);
}

TEST_F(WhyCommandTest, AFailedAdd) {
  Allocate();
  AttachTiming timing{{"rail0", "c0", "net1"}, 1, "port 1 is not ACTIVE", {}};
  timing.code = 11;
  timing.hint = "check the cable";
  timing.pod = "train/worker-0";
  timing.pod_uid = "uid-1";
  LogAttachTiming(root_, timing);
  const auto why = Run({"why", "train/worker-0"});
  EXPECT_EQ(why.status, 1);
  EXPECT_TRUE(why.out.starts_with("pod train/worker-0 (UID uid-1): failing, since ")) << why.out << why.err;
  EXPECT_NE(why.out.find("\n  ADD of network rail0 fails with code 11: port 1 is not ACTIVE.\n"),
            std::string::npos)
      << why.out;
  EXPECT_NE(why.out.find("\n  to do: check the cable\n"), std::string::npos) << why.out;
  EXPECT_NE(why.out.find("DEVICE"), std::string::npos) << why.out;
  const Json json = Json::parse(Run({"why", "uid-1", "-o", "json"}).out, nullptr, false);
  EXPECT_EQ(json["state"], "failing");
  EXPECT_EQ(json["pod"], "train/worker-0");
  EXPECT_EQ(json["failure"]["code"], 11);
  EXPECT_EQ(json["failure"]["hint"], "check the cable");
  EXPECT_EQ(json["devices"][0]["device"], vfs0_[0]);
  EXPECT_EQ(json["devices"][0]["state"], "allocated");
}

TEST_F(WhyCommandTest, AnAttachedPod) {
  Allocate();
  Attach();
  const auto why = Run({"why", "c1"});
  EXPECT_EQ(why.status, 0) << why.out << why.err;
  EXPECT_NE(why.out.find(": attached, since "), std::string::npos) << why.out;
  for (const std::string& line : Split(why.out.substr(why.out.find("\nDEVICE")), '\n'))
    EXPECT_LE(line.size(), 80U) << line;
}

TEST_F(WhyCommandTest, ExplainsANameOffline) {
  const auto alert = Run({"explain", "RailheadDown"});
  EXPECT_EQ(alert.status, 0) << alert.err;
  EXPECT_TRUE(alert.out.starts_with("RailheadDown (alert)\n  railheadd of a node does not answer"))
      << alert.out;
  EXPECT_NE(alert.out.find("\n  - Fix: "), std::string::npos) << alert.out;
  EXPECT_NE(alert.out.find("\n  More: docs/reference/runbooks.md#railheaddown\n"), std::string::npos);
  const Json json = Json::parse(Run({"explain", "11", "-o", "json"}).out, nullptr, false);
  EXPECT_EQ(json["explanations"][0]["kind"], "CNI error");
  const auto wrong = Run({"explain", "RailheadDwon"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find("did you mean RailheadDown?"), std::string::npos) << wrong.err;
}

TEST_F(WhyCommandTest, ListsAllNames) {
  const auto list = Run({"explain"});
  EXPECT_EQ(list.status, 0);
  for (const char* name : {"RailheadDown", "RailsReady", "rdma.port", "railhead_devices", "errorRate"})
    EXPECT_NE(list.out.find(name), std::string::npos) << name;
  for (const std::string& line : Split(list.out, '\n')) EXPECT_LE(line.size(), 80U) << line;
}

}  // namespace
}  // namespace railhead::testing

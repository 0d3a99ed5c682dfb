// The reconciler in railheadd: by --reconcile-once, at the start, and while it serves.
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>

#include "cni/attachment/device_locks.h"
#include "cni/state/attach_log.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/state_folder.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

class ReconcileProcessTest : public KubeletTest {
 protected:
  ReconcileProcessTest() { (void)MakeDirectories(root_.Path("/run/railhead")); }

  // The entry of a killed ADD. Its device has left the node, so only the entry has to go.
  [[nodiscard]] JournalEntry WriteKilledAdd(const std::string& container = "c1") const {
    JournalEntry entry;
    entry.key = {"rails", container, "net1"};
    entry.boot_id = BootId(root_).value();
    entry.netns = "/nonexistent/netns";
    AttachedDevice link;
    link.device = "0000:99:00.1";
    link.pod_name = "rail0";
    link.before.name = "never-there0";
    entry.devices.push_back(link);
    EXPECT_TRUE(Journal(root_).Write(entry));
    return entry;
  }
  [[nodiscard]] bool IsOnRecord(const JournalEntry& entry) const {
    return Journal(root_).Find(entry.key).value().has_value();
  }
  // An IPAM plugin that writes its process id and never ends.
  JournalEntry WriteEntryWithEndlessIpam() {
    const std::string programs = sysfs_.directory() + "/programs";
    pid_file_ = sysfs_.directory() + "/ipam.pid";
    WriteFileAt(programs + "/endless", "#!/bin/sh\necho $$ > " + pid_file_ + "\nexec sleep 600\n", true);
    JournalEntry entry = WriteKilledAdd();
    entry.ipam_type = "endless";
    entry.ipam_calls.push_back({"net1", "{}"});
    entry.cni_path = {programs};
    EXPECT_TRUE(Journal(root_).Write(entry));
    return entry;
  }
  ~ReconcileProcessTest() override {
    const std::string pid = pid_file_.empty() ? std::string() : ReadFileAt(pid_file_);
    if (!pid.empty()) ::kill(std::stoi(pid), SIGKILL);
  }

  std::string pid_file_;
};

TEST_F(ReconcileProcessTest, OnceWithoutAFabric) {
  sysfs_.Remove("/etc/railhead/fabric.json");
  const auto entry = WriteKilledAdd();
  const auto first = Run({"--reconcile-once"});
  EXPECT_EQ(first->Wait(), 0) << first->err();
  const Json json = Json::parse(first->out());
  EXPECT_EQ(json["attachments"], 1);
  ASSERT_EQ(json["actions"].size(), 1U) << first->out();
  EXPECT_EQ(json["actions"][0]["what"], "attachment");
  EXPECT_EQ(json["actions"][0]["name"], entry.key.ToString());
  EXPECT_FALSE(IsOnRecord(entry));
  const auto second = Run({"--reconcile-once"});
  EXPECT_EQ(second->Wait(), 0);
  EXPECT_TRUE(Json::parse(second->out())["actions"].empty()) << second->out();
}

TEST_F(ReconcileProcessTest, OnceThatFailsIsStatus1) {
  WriteFileAt(root_.Path("/run/railhead/attachments/c1/rails@net1.json"), "{");
  const auto child = Run({"--reconcile-once"});
  EXPECT_EQ(child->Wait(), 1);
  const Json json = Json::parse(child->out());
  EXPECT_NE(json["actions"][0]["error"].get<std::string>().find("rails@net1.json"), std::string::npos);
}

TEST_F(ReconcileProcessTest, ModesExcludeEachOther) {
  EXPECT_EQ(Run({"--reconcile-once", "--timings"})->Wait(), 2);
  EXPECT_EQ(Run({"--reconcile-interval", "-1"})->Wait(), 2);
}

TEST_F(ReconcileProcessTest, TimingsOfTheLatestAttachments) {
  for (int i = 1; i <= 100; ++i) {
    LogAttachTiming(root_,
                    {{"rails", "c1", "net1"},
                     2,
                     i == 100 ? "it failed" : "",
                     {{"vf", std::chrono::microseconds(100)}, {"move", std::chrono::milliseconds(i)}}});
  }
  (void)WriteInPlace(paths::AttachLog(root_) + ".1", "cut off in the mid\n");
  const auto child = Run({"--timings"});
  ASSERT_EQ(child->Wait(), 0) << child->err();
  const Json json = Json::parse(child->out());
  EXPECT_EQ(json["attached"], 99);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["phasesMs"]["move"],
            Json::parse(R"({"count": 99, "p50": 50.0, "p90": 90.0, "p99": 99.0, "max": 99.0})"));
  EXPECT_EQ(json["phasesMs"]["vf"]["p50"], 0.1);
  EXPECT_EQ(json["totalMs"]["max"], 99.1);
}

TEST_F(ReconcileProcessTest, DevicesAreRestoredBeforeKubeletGetsTheList) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto entry = WriteEntryWithEndlessIpam();
  const auto daemon = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return !ReadFileAt(pid_file_).empty(); })) << daemon->err();
  EXPECT_EQ(OurSockets(), 0U) << "it serves before the first pass is over";
  ASSERT_EQ(::kill(std::stoi(ReadFileAt(pid_file_)), SIGKILL), 0);
  pid_file_.clear();
  const auto devices = kubelet.Devices(kResource, 8, Soon());
  EXPECT_TRUE(devices) << Describe(devices.error()) << daemon->err();
  EXPECT_TRUE(Logs(*daemon, "\"not reconciled\""));
  EXPECT_TRUE(IsOnRecord(entry)) << "what could not be released is kept";
  EXPECT_EQ(daemon->Stop(), 0);
}

TEST_F(ReconcileProcessTest, EndsAtOnceWhileAPassHangs) {
  const auto entry = WriteEntryWithEndlessIpam();
  const auto daemon = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return !ReadFileAt(pid_file_).empty(); })) << daemon->err();
  daemon->Signal(SIGTERM);
  // The IPAM plugin would take ten minutes.
  EXPECT_TRUE(Eventually([&] { return daemon->HasEnded(); }));
  EXPECT_EQ(daemon->Wait(), 0) << daemon->err();
  EXPECT_TRUE(IsOnRecord(entry)) << "for the next pass";
}

TEST_F(ReconcileProcessTest, ReconcilesAgainAndAgain) {
  const auto daemon = RunDaemon({"--reconcile-interval", "1"});
  ASSERT_TRUE(Eventually([&] { return OurSockets() == 1; })) << daemon->err();
  for (const char* container : {"c1", "c2"}) {
    const auto entry = WriteKilledAdd(container);
    EXPECT_TRUE(Eventually([&] { return !IsOnRecord(entry); })) << daemon->err();
    EXPECT_TRUE(Logs(*daemon, entry.key.ToString()));
  }
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

// The IPAM plugin of a killed railheadd still has the device locked when the next railheadd begins.
TEST_F(ReconcileProcessTest, ALockedDeviceDoesNotWaitForAnInterval) {
  const auto entry = WriteKilledAdd();
  std::optional<attachment::DeviceLocks> locks =
      attachment::DeviceLocks::Acquire(root_, DevicesOf(entry), std::chrono::milliseconds(0)).value();
  const auto daemon = RunDaemon({"--reconcile-interval", "3600"});
  ASSERT_TRUE(Eventually([&] { return OurSockets() == 1; })) << daemon->err();
  EXPECT_TRUE(IsOnRecord(entry)) << "its device was locked";
  locks.reset();
  EXPECT_TRUE(Eventually([&] { return !IsOnRecord(entry); })) << daemon->err();
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

// railheadd reports a failure that repeats in every pass only once.
TEST_F(ReconcileProcessTest, TellsAFailureOnce) {
  WriteFileAt(root_.Path("/run/railhead/attachments/c1/rails@net1.json"), "{");
  const auto daemon = RunDaemon({"--reconcile-interval", "1", "--log-level", "debug"});
  ASSERT_TRUE(Logs(*daemon, "still not reconciled"));
  const std::string log = daemon->err();
  const auto first = log.find("\"not reconciled\"");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("\"not reconciled\"", first + 1), std::string::npos) << log;
  EXPECT_EQ(daemon->Stop(), 0);
}

TEST_F(ReconcileProcessTest, IntervalZeroIsOff) {
  const auto entry = WriteKilledAdd();
  const auto daemon = RunDaemon({"--reconcile-interval", "0"});
  ASSERT_TRUE(Eventually([&] { return OurSockets() == 1; })) << daemon->err();
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
  EXPECT_TRUE(IsOnRecord(entry));
}

}  // namespace
}  // namespace railhead::testing

// From what a pod's start has left on the node to the state that an operator reads.
#include "deviceplugin/tools/pod_start/start_report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "netns/base/text.h"

namespace railhead::testing {
namespace {

using namespace pod_start;

constexpr const char* kPod = "train/worker-0";
constexpr const char* kDevice = "0000:43:10.0";
constexpr const char* kPf = "0000:43:00.0";
const StartTime kNow = StartTime(std::chrono::seconds(1'800'000'000));

// A pod with one device, of which nothing is attached yet.
PodTrace Allocated() {
  PodTrace trace;
  trace.pod = kPod;
  trace.uid = "uid-1";
  trace.known = true;
  trace.allocated.push_back({kDevice, "railhead.io/rail0", "main", kNow, std::nullopt});
  return trace;
}

JournalEntry Entry(Phase phase) {
  JournalEntry entry;
  entry.key = {"rail0", "c1", "net1"};
  entry.phase = phase;
  entry.since = 1'800'000'000;
  entry.netns = "/run/netns/c1";
  AttachedDevice device;
  device.device = kDevice;
  device.pf = kPf;
  entry.devices.push_back(device);
  return entry;
}

PodTrace WithEntry(Phase phase) {
  PodTrace trace = Allocated();
  trace.attachments.push_back({Entry(phase)});
  trace.allocated[0].holder = DeviceHolder{"c1", kPod, false, phase == Phase::kDone, true};
  return trace;
}

AttachTiming Failure(int code, const std::string& error, std::int64_t seconds = 1'800'000'000) {
  AttachTiming timing{{"rail0", "c0", "net1"}, 1, error, {}};
  timing.hint = "a hint";
  timing.code = code;
  timing.time = StartTime(std::chrono::seconds(seconds));
  return timing;
}

RunningCall Running(const std::string& command) {
  return {command, "c1", "net1", kPod, "uid-1", kNow};
}

bool Says(const std::vector<std::string>& lines, const std::string& text) {
  return std::ranges::any_of(lines,
                             [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST(StartReportTest, APodThatNothingNamesIsUnknown) {
  PodTrace trace;
  trace.pod = kPod;
  const StartReport report = ExplainStart(trace);
  EXPECT_EQ(report.state, StartState::kUnknown);
  EXPECT_TRUE(Says(report.todo, "kubectl get pod -o wide"));
  EXPECT_TRUE(Says(report.todo, "railctl why UID"));
}

TEST(StartReportTest, ExhaustedResourcesAreNamedWithTheirNumbers) {
  PodTrace trace;
  trace.pod = kPod;
  trace.resources = {
      {"railhead.io/rail0", 2, 1, {"0000:43:10.1: link: no carrier"}, {"0000:43:10.0: pod a/b"}},
      {"railhead.io/rail1", 2, 1, {}, {}}};
  const StartReport report = ExplainStart(trace);
  EXPECT_NE(report.what.find("No healthy device of railhead.io/rail0 is free: 1 of 2 in use, 1 unhealthy"),
            std::string::npos)
      << report.what;
  EXPECT_EQ(report.what.find("rail1"), std::string::npos) << report.what;
  EXPECT_TRUE(Says(report.todo, "railctl health"));
}

TEST(StartReportTest, APodWithoutDevicesGetsNone) {
  PodTrace trace;
  trace.pod = kPod;
  trace.known = true;
  const StartReport report = ExplainStart(trace);
  EXPECT_EQ(report.state, StartState::kUnallocated);
  EXPECT_TRUE(Says(report.todo, "resources.limits"));
}

TEST(StartReportTest, AllocatedWithoutAnAdd) {
  const StartReport report = ExplainStart(Allocated());
  EXPECT_EQ(report.state, StartState::kAllocated);
  EXPECT_EQ(report.since, kNow);
  EXPECT_NE(report.next.find("Multus calls ADD"), std::string::npos);
  EXPECT_TRUE(Says(report.todo, "kubectl describe pod worker-0"));
  EXPECT_TRUE(Says(report.todo, "networks of railhead.io/rail0"));
  ASSERT_EQ(report.devices.size(), 1U);
  EXPECT_EQ(report.devices[0].step, "allocated");
}

TEST(StartReportTest, AnAddWaitsForTheDelOfAnotherPod) {
  PodTrace trace = Allocated();
  trace.running = {Running("ADD")};
  trace.allocated[0].holder = DeviceHolder{"c9", "train/old-0", false, true, false};
  const StartReport report = ExplainStart(trace);
  EXPECT_EQ(report.state, StartState::kAttaching);
  EXPECT_EQ(report.since, kNow);
  EXPECT_EQ(
      report.what,
      "ADD waits for device 0000:43:10.0, which container c9 (pod train/old-0) still has: its DEL has not "
      "come yet.");
  EXPECT_TRUE(Says(report.todo, "railctl why train/old-0"));
  EXPECT_EQ(report.devices[0].step, "in pod train/old-0");
}

TEST(StartReportTest, AnAddWaitsForAReset) {
  PodTrace trace = Allocated();
  trace.running = {Running("ADD")};
  trace.allocated[0].holder = DeviceHolder{kResetContainer, "", true, false, false};
  const StartReport report = ExplainStart(trace);
  EXPECT_NE(report.what.find("waits for the reset of device 0000:43:10.0"), std::string::npos) << report.what;
  EXPECT_TRUE(report.todo.empty()) << "it ends by itself";
}

TEST(StartReportTest, AnAddWaitsForAnAddressThenForTheLink) {
  PodTrace trace = WithEntry(Phase::kPlanned);
  trace.running = {Running("ADD")};
  trace.attachments[0].entry.ipam_type = "railhead-ipam";
  EXPECT_EQ(ExplainStart(trace).what, "ADD waits for an address from the IPAM plugin railhead-ipam.");
  trace.attachments[0].entry.devices[0].addressing.addresses = {*IpPrefix::Parse("10.1.0.7/24")};
  EXPECT_NE(ExplainStart(trace).what.find("ADD sets up the devices"), std::string::npos);
  const health::HealthReason cut{health::HealthRule::kLink, kPf, "", "PF pf0 has no carrier", kNow};
  trace.health = {{kPf, false, kPf, "pf0", false, kNow, {cut}}};
  const StartReport report = ExplainStart(trace);
  EXPECT_EQ(report.state, StartState::kAttaching);
  EXPECT_NE(report.what.find("ADD waits for the link. 0000:43:00.0: link: PF pf0 has no carrier"),
            std::string::npos)
      << report.what;
}

TEST(StartReportTest, AnUnfinishedEntryIsInWorkOnlyWhileItsLockIsHeld) {
  PodTrace trace = WithEntry(Phase::kPlanned);
  trace.attachments[0].locked = true;
  EXPECT_EQ(ExplainStart(trace).state, StartState::kAttaching);
  trace.attachments[0].locked = false;
  const StartReport report = ExplainStart(trace);
  EXPECT_EQ(report.state, StartState::kInterrupted);
  EXPECT_TRUE(Says(report.todo, "railctl journal restore c1/rail0@net1"));
}

TEST(StartReportTest, AnUnreadableEntryComesFirst) {
  PodTrace trace = WithEntry(Phase::kDone);
  trace.unreadable.push_back(
      {{"rail0", "c1", "net1"}, "/run/x.json", {kDevice}, {ErrorCode::kMalformed, "no valid JSON", "", 0}});
  const StartReport report = ExplainStart(trace);
  EXPECT_EQ(report.state, StartState::kInterrupted);
  EXPECT_NE(report.what.find("/run/x.json cannot be read: no valid JSON"), std::string::npos) << report.what;
  EXPECT_TRUE(Says(report.todo, std::string("railctl journal restore ") + kDevice));
}

TEST(StartReportTest, AFailedAddHasItsLatestErrorAndAllAttempts) {
  PodTrace trace = Allocated();
  trace.failures = {Failure(11, "no carrier", 1'800'000'000), Failure(11, "no carrier", 1'800'000'010),
                    Failure(105, "no free address", 1'800'000'020)};
  const StartReport report = ExplainStart(trace);
  EXPECT_EQ(report.state, StartState::kFailing);
  EXPECT_EQ(report.since, kNow) << "since the first";
  EXPECT_EQ(report.what, "ADD of network rail0 fails with code 105: no free address.");
  EXPECT_EQ(report.tried, (std::vector<std::string>{
                              "2 ADDs with code 11, the latest at 2027-01-15T08:00:10Z: no carrier",
                              "1 ADD with code 105, the latest at 2027-01-15T08:00:20Z: no free address"}));
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->times, 3U);
  EXPECT_EQ(report.failure->code, 105);
  EXPECT_EQ(report.todo[0], "a hint");
  EXPECT_TRUE(Says(report.todo, "railctl explain 105"));
  EXPECT_TRUE(Says(report.todo, "railctl ipam list"));
}

TEST(StartReportTest, AttachedSinceTheLastAdd) {
  PodTrace trace = WithEntry(Phase::kDone);
  trace.failures = {Failure(11, "no carrier")};
  const StartReport report = ExplainStart(trace);
  EXPECT_EQ(report.state, StartState::kAttached) << "earlier failures are over";
  EXPECT_EQ(report.since, kNow);
  EXPECT_TRUE(Says(report.todo, std::string("railctl nccl verify ") + kPod));
  EXPECT_EQ(report.devices[0].step, "attached");
  EXPECT_EQ(report.tried.size(), 1U);
}

TEST(StartReportTest, OneOfTwoDevicesIsNotEnough) {
  PodTrace trace = WithEntry(Phase::kDone);
  trace.allocated.push_back({"0000:83:10.0", "railhead.io/rail1", "main", kNow, std::nullopt});
  const StartReport report = ExplainStart(trace);
  EXPECT_EQ(report.state, StartState::kAllocated);
  EXPECT_NE(report.what.find("no ADD has come for 1 of them"), std::string::npos) << report.what;
}

TEST(StartReportTest, APodThatEnds) {
  PodTrace running = WithEntry(Phase::kDone);
  running.running = {Running("DEL")};
  EXPECT_EQ(ExplainStart(running).state, StartState::kEnding);
  PodTrace gone = WithEntry(Phase::kDone);
  gone.attachments[0].netns_gone = true;
  EXPECT_NE(ExplainStart(gone).what.find("/run/netns/c1 is gone"), std::string::npos);
  PodTrace removed = WithEntry(Phase::kDone);
  removed.removed = true;
  EXPECT_EQ(ExplainStart(removed).what, "kubelet has removed the pod, and its DEL has not come.");
  PodTrace freed = WithEntry(Phase::kDone);
  freed.allocated.clear();
  freed.attachments[0].entry.devices.clear();
  EXPECT_NE(ExplainStart(freed).what.find("has not released their addresses"), std::string::npos);
  PodTrace over = Allocated();
  over.removed = true;
  over.failures = {Failure(11, "no carrier")};
  EXPECT_EQ(ExplainStart(over).state, StartState::kUnknown) << "nobody tries any more";
}

TEST(ResourceUseTest, FreeIsNeverBelowNone) {
  EXPECT_EQ((ResourceUse{"r", 4, 1, {"a"}, {}}).Free(), 2U);
  EXPECT_EQ((ResourceUse{"r", 1, 2, {"a"}, {}}).Free(), 0U);
}

}  // namespace
}  // namespace railhead::testing

// What the checks of `railctl precheck` make of what was read.
#include "deviceplugin/tools/precheck/judges.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "netns/json/record_io.h"

namespace railhead::testing {
namespace {

using precheck::Finding;
using precheck::Fitness;

constexpr const char* kPf = "0000:43:00.0";
constexpr const char* kVf = "0000:43:02.0";
const Error kDamaged{ErrorCode::kMalformed, "the file is damaged", "remove it", 0};

health::DeviceHealth Device(const std::string& id, const std::string& whose_trouble = "") {
  health::DeviceHealth device;
  device.id = id;
  device.pf = kPf;
  device.is_vf = id != kPf;
  device.healthy = whose_trouble.empty();
  if (device.healthy) return device;
  health::HealthReason reason;
  reason.device = whose_trouble;
  reason.text = "trouble of " + whose_trouble;
  device.reasons = {reason};
  return device;
}

Finding Health(std::vector<health::DeviceHealth> devices) {
  health::HealthState state;
  state.devices = std::move(devices);
  return precheck::JudgeHealth(std::optional(state));
}

TEST(PrecheckHealthTest, OneUnhealthyDeviceIsEnough) {
  EXPECT_EQ(Health({Device(kPf), Device(kVf)}).details,
            std::vector<std::string>{"no rule has hold of any of 2 devices"});
  EXPECT_EQ(Health({Device(kPf), Device(kVf)}).fitness, Fitness::kFit);
  const Finding finding = Health({Device(kPf, kPf), Device(kVf, kPf)});
  EXPECT_EQ(finding.fitness, Fitness::kUnfit);
  EXPECT_EQ(finding.details, (std::vector<std::string>{"0000:43:00.0 is unhealthy: trouble of 0000:43:00.0",
                                                       "1 devices are unhealthy with their PF"}));
  EXPECT_EQ(Health({Device(kPf), Device(kVf, kVf)}).fitness, Fitness::kUnfit);
  EXPECT_EQ(Health({Device(kVf, kPf)}).fitness, Fitness::kUnfit) << "also when the PF itself is not told";
}

TEST(PrecheckHealthTest, WhatNobodyLookedAtIsUnknown) {
  EXPECT_EQ(precheck::JudgeHealth(std::optional<health::HealthState>()).fitness, Fitness::kUnknown);
  const Finding finding = precheck::JudgeHealth(Fail(kDamaged));
  EXPECT_EQ(finding, (Finding{"health", Fitness::kUnknown, {"the file is damaged"}, "remove it"}));
}

TEST(PrecheckDrainTest, IsACheckOfItsOwnSoThatProofComesBeforeReturn) {
  health::DeviceHealth drained = Device(kPf, kPf);
  drained.reasons[0].rule = health::HealthRule::kDrained;
  EXPECT_EQ(Health({drained}).fitness, Fitness::kFit);
  drained.reasons.push_back(Device(kPf, kPf).reasons[0]);
  EXPECT_EQ(Health({drained}).fitness, Fitness::kUnfit);
  EXPECT_EQ(precheck::JudgeDrains(std::vector<health::Drain>()).fitness, Fitness::kFit);
  const Finding finding = precheck::JudgeDrains(std::vector<health::Drain>{{kPf, "rail0", "cable", {}}});
  EXPECT_EQ(finding,
            (Finding{"drained", Fitness::kUnfit, {"rail0 is drained: cable"}, "railctl return rail0"}));
  EXPECT_EQ(precheck::JudgeDrains(Fail(kDamaged)).fitness, Fitness::kUnknown);
}

precheck::RailPort Port(const std::string& rail, const std::string& pf, std::optional<bool> carrier) {
  precheck::RailPort port;
  port.rail = rail;
  port.pf = pf;
  port.carrier = carrier;
  return port;
}

Finding Rails(std::vector<precheck::RailPort> ports) {
  return precheck::JudgeRails(std::move(ports));
}

TEST(PrecheckRailsTest, AllOfThemWithCarrier) {
  EXPECT_EQ(Rails({Port("rail0", "pf0", true), Port("rail1", "pf1", true)}).fitness, Fitness::kFit);
  EXPECT_EQ(Rails({Port("rail0", "pf0", true), Port("rail1", "", std::nullopt)}).fitness, Fitness::kUnfit);
  EXPECT_EQ(Rails({Port("rail0", "pf0", true), Port("rail1", "pf1", std::nullopt)}).fitness,
            Fitness::kUnknown);
  const Finding finding = Rails({Port("rail0", "pf0", std::nullopt), Port("rail1", "pf1", false)});
  EXPECT_EQ(finding.fitness, Fitness::kUnfit);
  ASSERT_EQ(finding.details.size(), 2U) << "all that is wrong";
  EXPECT_EQ(finding.details[1], "rail1: pf1 has no carrier");
  EXPECT_NE(finding.fix.find("cable"), std::string::npos) << "of the worst";
  EXPECT_EQ(precheck::JudgeRails(Fail(kDamaged)).fitness, Fitness::kUnknown);
}

Finding Cabling(std::vector<lldp::Cabling> rails, std::chrono::seconds age = std::chrono::seconds(10)) {
  const std::chrono::system_clock::time_point now{std::chrono::hours(1000)};
  lldp::LeafReport report;
  report.time = now - age;
  for (const railhead::lldp::Cabling cabling : rails) {
    lldp::RailLeaf rail;
    rail.rail = "rail" + std::to_string(report.rails.size());
    rail.cabling = cabling;
    if (cabling != railhead::lldp::Cabling::kUnchecked) rail.expected = {"leaf*"};
    report.rails.push_back(rail);
  }
  return precheck::JudgeCabling(std::optional(report), now);
}

TEST(PrecheckCablingTest, WrongIsUnfitAndUnheardUnknown) {
  using railhead::lldp::Cabling::kRight;
  using railhead::lldp::Cabling::kUnchecked;
  using railhead::lldp::Cabling::kUnknown;
  using railhead::lldp::Cabling::kWrong;
  EXPECT_EQ(Cabling({kRight, kUnchecked}).fitness, Fitness::kFit);
  EXPECT_EQ(Cabling({kRight, kUnknown}).fitness, Fitness::kUnknown);
  EXPECT_EQ(Cabling({kUnknown, kWrong}).fitness, Fitness::kUnfit);
  EXPECT_EQ(Cabling({kUnchecked}).details[0], "no rail says which switch it belongs to");
  EXPECT_EQ(Cabling({kRight}, std::chrono::hours(1)).fitness, Fitness::kUnknown) << "railheadd has ended";
  EXPECT_EQ(precheck::JudgeCabling(std::optional<lldp::LeafReport>(), {}).fitness, Fitness::kUnknown);
}

Finding Reach(const reachability::RailReach& rail) {
  const std::chrono::system_clock::time_point now{std::chrono::hours(1000)};
  reachability::ReachReport report;
  report.time = now;
  report.rails = {rail};
  return precheck::JudgeReach(std::optional(report), now);
}

reachability::RailReach RailWith(reachability::ReachState state, int well, int silent) {
  reachability::RailReach rail;
  rail.rail = "rail0";
  rail.state = state;
  for (int i = 0; i < well + silent; ++i)
    rail.peers.emplace_back().state =
        i < well ? reachability::PeerState::kReachable : reachability::PeerState::kSilent;
  return rail;
}

TEST(PrecheckReachTest, ItsOwnFaultIsUnfitAndAPeersIsNot) {
  EXPECT_EQ(Reach(RailWith(reachability::ReachState::kReachable, 3, 0)).fitness, Fitness::kFit);
  EXPECT_EQ(Reach(RailWith(reachability::ReachState::kDegraded, 3, 1)).fitness, Fitness::kFit);
  EXPECT_EQ(Reach(RailWith(reachability::ReachState::kDegraded, 3, 1)).details[0],
            "rail0 does not reach all");
  EXPECT_EQ(Reach(RailWith(reachability::ReachState::kDegraded, 1, 3)).fitness, Fitness::kUnfit);
  EXPECT_EQ(Reach(RailWith(reachability::ReachState::kDead, 0, 3)).details[0], "rail0 is dead");
  EXPECT_EQ(Reach(RailWith(reachability::ReachState::kUnknown, 0, 0)).fitness, Fitness::kUnknown);
  reachability::RailReach mute = RailWith(reachability::ReachState::kDegraded, 3, 0);
  mute.gateway = reachability::GatewayReach{};
  EXPECT_EQ(Reach(mute).fitness, Fitness::kUnfit) << "its gateway is silent";
}

TEST(PrecheckReachTest, WhereNothingIsProbedNothingIsSaid) {
  EXPECT_EQ(precheck::JudgeReach(std::optional<reachability::ReachReport>(), {}).fitness, Fitness::kFit);
  reachability::ReachReport old;
  EXPECT_EQ(precheck::JudgeReach(std::optional(old), std::chrono::system_clock::now()).fitness,
            Fitness::kUnknown);
  EXPECT_EQ(precheck::JudgeReach(Fail(kDamaged), {}).fitness, Fitness::kUnknown);
}

rdma_test::TestRecord Record(Result<rdma_test::Outcome> outcome) {
  return {"host", "node1:7000", "rail0", 1, std::move(outcome)};
}

Finding Rdma(Result<rdma_test::Outcome> outcome) {
  std::vector<rdma_test::TestRecord> records;
  records.push_back(Record(std::move(outcome)));
  return precheck::JudgeRdma(std::move(records));
}

// A link that came up with half its lanes moves data without an error.
TEST(PrecheckRdmaTest, ASlowRailIsUnfit) {
  rdma_test::Outcome outcome;
  outcome.write.bytes = 12'500'000'000;
  outcome.write.seconds = 1;
  std::vector<rdma_test::TestRecord> records = {{"host", "node1:7000", "rail0", 1, outcome}};
  outcome.write.bytes = 48'000'000'000;
  records.push_back({"host", "node1:7000", "rail1", 1, outcome});
  EXPECT_EQ(precheck::JudgeRdma(records, 100).fitness, Fitness::kFit) << "as fast as it has to be";
  const Finding slow = precheck::JudgeRdma(records, 300);
  EXPECT_EQ(slow.fitness, Fitness::kUnfit);
  ASSERT_EQ(slow.details.size(), 2U);
  EXPECT_EQ(slow.details[0], "node1:7000 rail0: 100.0 Gbit/s, less than 300.0 Gbit/s");
  EXPECT_EQ(slow.details[1], "node1:7000 rail1: 384.0 Gbit/s");
  EXPECT_NE(slow.fix.find("another peer"), std::string::npos);
}

TEST(PrecheckRdmaTest, APeerThatDoesNotListenSaysNothingOfThisNode) {
  rdma_test::Outcome outcome;
  outcome.write.bytes = 12'500'000'000;
  outcome.write.seconds = 1;
  EXPECT_EQ(Rdma(outcome).fitness, Fitness::kFit);
  EXPECT_EQ(Rdma(outcome).details[0], "node1:7000 rail0: 100.0 Gbit/s");
  EXPECT_EQ(Rdma(FailSys(ECONNREFUSED, "connecting to node1:7000")).fitness, Fitness::kUnknown);
  EXPECT_EQ(Rdma(Fail(ErrorCode::kUnavailable, "port 1 is DOWN")).fitness, Fitness::kUnfit);
  EXPECT_EQ(precheck::JudgeRdma(Fail(ErrorCode::kNotFound, "no pod x")).fitness, Fitness::kUnknown);
}

doctor::Finding Of(const doctor::Check& check, doctor::Status status) {
  doctor::Finding finding;
  finding.check = &check;
  finding.verdict.Add(status, "seen");
  return finding;
}

TEST(PrecheckDoctorTest, WarningsCountAndSkipsDoNot) {
  const auto checks = doctor::AllChecks();
  doctor::Report report;
  report.findings = {Of(checks[0], doctor::Status::kOk), Of(checks[1], doctor::Status::kSkipped),
                     Of(checks[2], doctor::Status::kNote)};
  EXPECT_EQ(precheck::JudgeDoctor(report).fitness, Fitness::kFit);
  report.findings.push_back(Of(checks[3], doctor::Status::kWarning));
  const Finding finding = precheck::JudgeDoctor(report);
  EXPECT_EQ(finding.fitness, Fitness::kUnfit);
  EXPECT_EQ(finding.details, std::vector<std::string>{std::string(checks[3].id) + ": seen"});
}

TEST(PrecheckReportTest, TheWorstIsTheVerdict) {
  precheck::Report report;
  report.node = "gpu-001";
  EXPECT_EQ(report.Verdict(), Fitness::kUnknown) << "nothing was checked";
  report.findings = {{"health", Fitness::kSkipped, {}, ""}};
  EXPECT_EQ(report.Verdict(), Fitness::kUnknown);
  report.findings.push_back({"rails", Fitness::kFit, {"all 8 rails have carrier"}, ""});
  EXPECT_EQ(report.Verdict(), Fitness::kFit);
  report.findings.push_back({"cabling", Fitness::kUnknown, {"nobody listens"}, "start it"});
  EXPECT_EQ(report.Verdict(), Fitness::kUnknown);
  report.findings.push_back({"doctor", Fitness::kUnfit, {"a", "b"}, "mend it"});
  EXPECT_EQ(report.Verdict(), Fitness::kUnfit);
  EXPECT_EQ(precheck::ReportAsText(report),
            "skipped  health\n"
            "fit      rails      all 8 rails have carrier\n"
            "unknown  cabling    nobody listens\n"
            "         fix: start it\n"
            "unfit    doctor     a\n"
            "                    b\n"
            "         fix: mend it\n"
            "node gpu-001 is not fit\n");
  const auto json = ToJson(report);
  EXPECT_EQ(json["fitness"], "unfit");
  EXPECT_EQ(json["checks"][3]["details"], (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(json["checks"][1].contains("fix"));
}

}  // namespace
}  // namespace railhead::testing

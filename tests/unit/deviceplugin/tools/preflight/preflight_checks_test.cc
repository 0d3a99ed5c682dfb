// What the checks of `railctl preflight` make of what was read.
#include "deviceplugin/tools/preflight/preflight_checks.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "deviceplugin/tools/preflight/report.h"
#include "netns/json/record_io.h"

namespace railhead::testing {
namespace {

using preflight::Finding;
using preflight::Fitness;

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
  return preflight::CheckHealth(std::optional(state));
}

TEST(PreflightHealthTest, OneUnhealthyDeviceIsEnough) {
  EXPECT_EQ(Health({Device(kPf), Device(kVf)}).details,
            std::vector<std::string>{"no health rule is active for any of 2 devices"});
  EXPECT_EQ(Health({Device(kPf), Device(kVf)}).fitness, Fitness::kFit);
  const Finding finding = Health({Device(kPf, kPf), Device(kVf, kPf)});
  EXPECT_EQ(finding.fitness, Fitness::kUnfit);
  EXPECT_EQ(finding.details, (std::vector<std::string>{"0000:43:00.0 is unhealthy: trouble of 0000:43:00.0",
                                                       "1 devices are unhealthy with their PF"}));
  EXPECT_EQ(Health({Device(kPf), Device(kVf, kVf)}).fitness, Fitness::kUnfit);
  EXPECT_EQ(Health({Device(kVf, kPf)}).fitness, Fitness::kUnfit) << "also when the PF itself is not told";
}

TEST(PreflightHealthTest, WhatNobodyLookedAtIsUnknown) {
  EXPECT_EQ(preflight::CheckHealth(std::optional<health::HealthState>()).fitness, Fitness::kUnknown);
  const Finding finding = preflight::CheckHealth(Fail(kDamaged));
  EXPECT_EQ(finding, (Finding{"health", Fitness::kUnknown, {"the file is damaged"}, "remove it"}));
}

TEST(PreflightDrainTest, IsACheckOfItsOwnSoThatProofComesBeforeReturn) {
  health::DeviceHealth drained = Device(kPf, kPf);
  drained.reasons[0].rule = health::HealthRule::kDrained;
  EXPECT_EQ(Health({drained}).fitness, Fitness::kFit);
  drained.reasons.push_back(Device(kPf, kPf).reasons[0]);
  EXPECT_EQ(Health({drained}).fitness, Fitness::kUnfit);
  EXPECT_EQ(preflight::CheckDrains(std::vector<health::Drain>()).fitness, Fitness::kFit);
  const Finding finding = preflight::CheckDrains(std::vector<health::Drain>{{kPf, "rail0", "cable", {}}});
  EXPECT_EQ(finding,
            (Finding{"drained", Fitness::kUnfit, {"rail0 is drained: cable"}, "railctl undrain rail0"}));
  EXPECT_EQ(preflight::CheckDrains(Fail(kDamaged)).fitness, Fitness::kUnknown);
}

preflight::RailPf Port(const std::string& rail, const std::string& pf, std::optional<bool> carrier) {
  preflight::RailPf port;
  port.rail = rail;
  port.pf = pf;
  port.carrier = carrier;
  return port;
}

Finding Rails(std::vector<preflight::RailPf> ports) {
  return preflight::CheckRails(std::move(ports));
}

TEST(PreflightRailsTest, AllOfThemWithCarrier) {
  EXPECT_EQ(Rails({Port("rail0", "pf0", true), Port("rail1", "pf1", true)}).fitness, Fitness::kFit);
  EXPECT_EQ(Rails({Port("rail0", "pf0", true), Port("rail1", "", std::nullopt)}).fitness, Fitness::kUnfit);
  EXPECT_EQ(Rails({Port("rail0", "pf0", true), Port("rail1", "pf1", std::nullopt)}).fitness,
            Fitness::kUnknown);
  const Finding finding = Rails({Port("rail0", "pf0", std::nullopt), Port("rail1", "pf1", false)});
  EXPECT_EQ(finding.fitness, Fitness::kUnfit);
  ASSERT_EQ(finding.details.size(), 2U) << "all that is wrong";
  EXPECT_EQ(finding.details[1], "rail1: pf1 has no carrier");
  EXPECT_NE(finding.fix.find("cable"), std::string::npos) << "of the worst";
  EXPECT_EQ(preflight::CheckRails(Fail(kDamaged)).fitness, Fitness::kUnknown);
}

Finding Cabling(std::vector<lldp::Cabling> rails, std::chrono::seconds age = std::chrono::seconds(10)) {
  const std::chrono::system_clock::time_point now{std::chrono::hours(1000)};
  lldp::LldpReport report;
  report.time = now - age;
  for (const railhead::lldp::Cabling cabling : rails) {
    lldp::RailNeighbor rail;
    rail.rail = "rail" + std::to_string(report.rails.size());
    rail.cabling = cabling;
    if (cabling != railhead::lldp::Cabling::kUnchecked) rail.expected = {"leaf*"};
    report.rails.push_back(rail);
  }
  return preflight::CheckCabling(std::optional(report), now);
}

TEST(PreflightCablingTest, WrongIsUnfitAndUnheardUnknown) {
  using railhead::lldp::Cabling::kRight;
  using railhead::lldp::Cabling::kUnchecked;
  using railhead::lldp::Cabling::kUnknown;
  using railhead::lldp::Cabling::kWrong;
  EXPECT_EQ(Cabling({kRight, kUnchecked}).fitness, Fitness::kFit);
  EXPECT_EQ(Cabling({kRight, kUnknown}).fitness, Fitness::kUnknown);
  EXPECT_EQ(Cabling({kUnknown, kWrong}).fitness, Fitness::kUnfit);
  EXPECT_EQ(Cabling({kUnchecked}).details[0], "no rail has expectedSwitches");
  EXPECT_EQ(Cabling({kRight}, std::chrono::hours(1)).fitness, Fitness::kUnknown) << "railheadd has ended";
  EXPECT_EQ(preflight::CheckCabling(std::optional<lldp::LldpReport>(), {}).fitness, Fitness::kUnknown);
}

Finding JudgeRail(const reachability::RailReachability& rail) {
  const std::chrono::system_clock::time_point now{std::chrono::hours(1000)};
  reachability::ReachabilityReport report;
  report.time = now;
  report.rails = {rail};
  return preflight::CheckReachability(std::optional(report), now);
}

reachability::RailReachability RailWith(reachability::ReachabilityState state, int well, int silent) {
  reachability::RailReachability rail;
  rail.rail = "rail0";
  rail.state = state;
  for (int i = 0; i < well + silent; ++i)
    rail.peers.emplace_back().state =
        i < well ? reachability::PeerState::kReachable : reachability::PeerState::kSilent;
  return rail;
}

TEST(PreflightReachabilityTest, ItsOwnFaultIsUnfitAndAPeersIsNot) {
  EXPECT_EQ(JudgeRail(RailWith(reachability::ReachabilityState::kReachable, 3, 0)).fitness, Fitness::kFit);
  EXPECT_EQ(JudgeRail(RailWith(reachability::ReachabilityState::kDegraded, 3, 1)).fitness, Fitness::kFit);
  EXPECT_EQ(JudgeRail(RailWith(reachability::ReachabilityState::kDegraded, 3, 1)).details[0],
            "rail0 does not reach all peers");
  EXPECT_EQ(JudgeRail(RailWith(reachability::ReachabilityState::kDegraded, 1, 3)).fitness, Fitness::kUnfit);
  EXPECT_EQ(JudgeRail(RailWith(reachability::ReachabilityState::kDead, 0, 3)).details[0], "rail0 is dead");
  EXPECT_EQ(JudgeRail(RailWith(reachability::ReachabilityState::kUnknown, 0, 0)).fitness, Fitness::kUnknown);
  reachability::RailReachability mute = RailWith(reachability::ReachabilityState::kDegraded, 3, 0);
  mute.gateway = reachability::GatewayReachability{};
  EXPECT_EQ(JudgeRail(mute).fitness, Fitness::kUnfit) << "its gateway is silent";
}

TEST(PreflightReachabilityTest, WhereNothingIsProbedNothingIsSaid) {
  EXPECT_EQ(preflight::CheckReachability(std::optional<reachability::ReachabilityReport>(), {}).fitness,
            Fitness::kFit);
  reachability::ReachabilityReport old;
  EXPECT_EQ(preflight::CheckReachability(std::optional(old), std::chrono::system_clock::now()).fitness,
            Fitness::kUnknown);
  EXPECT_EQ(preflight::CheckReachability(Fail(kDamaged), {}).fitness, Fitness::kUnknown);
}

rdma_test::TestRecord Record(Result<rdma_test::Outcome> outcome) {
  return {"host", "node1:7000", "rail0", 1, std::move(outcome)};
}

Finding Rdma(Result<rdma_test::Outcome> outcome) {
  std::vector<rdma_test::TestRecord> records;
  records.push_back(Record(std::move(outcome)));
  return preflight::CheckRdma(std::move(records));
}

// A link that came up with half its lanes moves data without an error.
TEST(PreflightRdmaTest, ASlowRailIsUnfit) {
  rdma_test::Outcome outcome;
  outcome.write.bytes = 12'500'000'000;
  outcome.write.seconds = 1;
  std::vector<rdma_test::TestRecord> records = {{"host", "node1:7000", "rail0", 1, outcome}};
  outcome.write.bytes = 48'000'000'000;
  records.push_back({"host", "node1:7000", "rail1", 1, outcome});
  EXPECT_EQ(preflight::CheckRdma(records, 100).fitness, Fitness::kFit) << "as fast as it has to be";
  const Finding slow = preflight::CheckRdma(records, 300);
  EXPECT_EQ(slow.fitness, Fitness::kUnfit);
  ASSERT_EQ(slow.details.size(), 2U);
  EXPECT_EQ(slow.details[0], "node1:7000 rail0: 100.0 Gbit/s, less than 300.0 Gbit/s");
  EXPECT_EQ(slow.details[1], "node1:7000 rail1: 384.0 Gbit/s");
  EXPECT_NE(slow.fix.find("another peer"), std::string::npos);
}

TEST(PreflightRdmaTest, APeerThatDoesNotListenSaysNothingOfThisNode) {
  rdma_test::Outcome outcome;
  outcome.write.bytes = 12'500'000'000;
  outcome.write.seconds = 1;
  EXPECT_EQ(Rdma(outcome).fitness, Fitness::kFit);
  EXPECT_EQ(Rdma(outcome).details[0], "node1:7000 rail0: 100.0 Gbit/s");
  EXPECT_EQ(Rdma(FailSys(ECONNREFUSED, "connecting to node1:7000")).fitness, Fitness::kUnknown);
  EXPECT_EQ(Rdma(Fail(ErrorCode::kUnavailable, "port 1 is DOWN")).fitness, Fitness::kUnfit);
  EXPECT_EQ(preflight::CheckRdma(Fail(ErrorCode::kNotFound, "no pod x")).fitness, Fitness::kUnknown);
}

doctor::Finding Of(const doctor::Check& check, doctor::Status status) {
  doctor::Finding finding;
  finding.check = &check;
  finding.verdict.Add(status, "seen");
  return finding;
}

TEST(PreflightDoctorTest, WarningsCountAndSkipsDoNot) {
  const auto checks = doctor::AllChecks();
  doctor::Report report;
  report.findings = {Of(checks[0], doctor::Status::kOk), Of(checks[1], doctor::Status::kSkipped),
                     Of(checks[2], doctor::Status::kNote)};
  EXPECT_EQ(preflight::CheckDoctor(report).fitness, Fitness::kFit);
  report.findings.push_back(Of(checks[3], doctor::Status::kWarning));
  const Finding finding = preflight::CheckDoctor(report);
  EXPECT_EQ(finding.fitness, Fitness::kUnfit);
  EXPECT_EQ(finding.details, std::vector<std::string>{std::string(checks[3].id) + ": seen"});
}

TEST(PreflightReportTest, TheWorstIsTheVerdict) {
  preflight::Report report;
  report.node = "gpu-001";
  EXPECT_EQ(report.Verdict(), Fitness::kUnknown) << "nothing was checked";
  report.findings = {{"health", Fitness::kSkipped, {}, ""}};
  EXPECT_EQ(report.Verdict(), Fitness::kUnknown);
  report.findings.push_back({"rails", Fitness::kFit, {"all 8 rails have carrier"}, ""});
  EXPECT_EQ(report.Verdict(), Fitness::kFit);
  report.findings.push_back({"cabling", Fitness::kUnknown, {"nobody listens"}, "start it"});
  EXPECT_EQ(report.Verdict(), Fitness::kUnknown);
  report.findings.push_back({"doctor", Fitness::kUnfit, {"a", "b"}, "fix it"});
  EXPECT_EQ(report.Verdict(), Fitness::kUnfit);
  EXPECT_EQ(preflight::ReportAsText(report),
            "skipped  health\n"
            "fit      rails        all 8 rails have carrier\n"
            "unknown  cabling      nobody listens\n"
            "         fix: start it\n"
            "unfit    doctor       a\n"
            "                      b\n"
            "         fix: fix it\n"
            "node gpu-001 is not fit\n");
  const auto json = ToJson(report);
  EXPECT_EQ(json["fitness"], "unfit");
  EXPECT_EQ(json["checks"][3]["details"], (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(json["checks"][1].contains("fix"));
}

}  // namespace
}  // namespace railhead::testing

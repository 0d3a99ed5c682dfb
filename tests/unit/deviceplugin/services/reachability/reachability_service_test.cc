// How railheadd uses and reports a node's reachability.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "deviceplugin/services/reachability/rail_verdicts.h"
#include "deviceplugin/services/reachability/reachability_log.h"
#include "deviceplugin/services/reachability/reachability_metrics.h"
#include "netns/base/text.h"
#include "tests/support/metrics/documented_metrics.h"
#include "tests/support/metrics/metrics_parser.h"
#include "tests/unit/deviceplugin/services/reachability/reachability_values.h"

namespace railhead::testing {
namespace {

// What probes say of a rail, for the node status.

using reachability::RailVerdicts;
using Peer = reachability::PeerState;
using Rail = reachability::ReachabilityState;
using std::chrono::seconds;

// One rail over time.
class ProbedRail {
 public:
  // Whether its fault came or went.
  bool See(Rail state, int second, const std::vector<Peer>& peers = {}) {
    std::vector<reachability::PeerReachability> of;
    for (const Peer peer : peers) of.push_back(PeerOf(NodeNumber(static_cast<int>(of.size())), peer));
    reachability::ReachabilityReport report{"n", ReachabilityWall(0), {RailOf("rail0", state, of)}, {}};
    report.rails[0].probed = state != Rail::kUnknown;
    report.rails[0].because = "why";
    return verdicts_.Update(report, At(second));
  }
  bool IsGone(int second) { return verdicts_.Update({"n", ReachabilityWall(0), {}, {}}, At(second)); }
  [[nodiscard]] std::string Fault() const {
    const auto faults = verdicts_.Faults();
    const auto found = faults.find("rail0");
    return found == faults.end() ? "" : found->second;
  }

 private:
  static RailVerdicts::Clock::time_point At(int second) {
    return RailVerdicts::Clock::time_point(seconds(second));
  }
  RailVerdicts verdicts_;
};

TEST(RailVerdictsTest, ADeadRailCountsAtOnceAndUntilItHasBeenWellForLong) {
  ProbedRail rail;
  EXPECT_EQ(rail.Fault(), "") << "not probed";
  EXPECT_FALSE(rail.See(Rail::kReachable, 0));
  EXPECT_TRUE(rail.See(Rail::kDead, 10));
  EXPECT_EQ(rail.Fault(), "probes reach nothing: why");
  EXPECT_FALSE(rail.See(Rail::kReachable, 20));
  EXPECT_FALSE(rail.See(Rail::kReachable, 139));
  EXPECT_FALSE(rail.See(Rail::kDead, 140)) << "it still counts";
  EXPECT_FALSE(rail.See(Rail::kDegraded, 150));
  EXPECT_FALSE(rail.See(Rail::kReachable, 269));
  EXPECT_EQ(rail.Fault(), "probes reach nothing: why");
  EXPECT_TRUE(rail.See(Rail::kReachable, 270));
  EXPECT_EQ(rail.Fault(), "");
}

TEST(RailVerdictsTest, WhatIsNotKnownChangesNothing) {
  ProbedRail rail;
  EXPECT_FALSE(rail.See(Rail::kUnknown, 0));
  EXPECT_TRUE(rail.See(Rail::kDead, 10));
  EXPECT_FALSE(rail.See(Rail::kReachable, 20));
  EXPECT_FALSE(rail.See(Rail::kUnknown, 500));
  EXPECT_FALSE(rail.See(Rail::kReachable, 510)) << "what is not known is no proof";
  EXPECT_EQ(rail.Fault(), "probes reach nothing: why");
  EXPECT_TRUE(rail.IsGone(520));
  EXPECT_EQ(rail.Fault(), "");
}

// Whether a rail with these peers, for a minute, is at fault.
bool IsImpaired(const std::vector<Peer>& peers) {
  ProbedRail rail;
  EXPECT_FALSE(rail.See(Rail::kDegraded, 0, peers)) << "loss may pass";
  EXPECT_FALSE(rail.See(Rail::kDegraded, 59, peers));
  return rail.See(Rail::kDegraded, 60, peers) && rail.Fault() == "probes find faults to most peers: why";
}

// If a node's own rail fails, all other nodes seem to fail.
TEST(RailVerdictsTest, ARailThatIsFaultyTowardsMostCountsAfterAMinute) {
  EXPECT_TRUE(IsImpaired({Peer::kMtu, Peer::kMtu, Peer::kReachable}));
  EXPECT_TRUE(IsImpaired({Peer::kOneWay, Peer::kLossy, Peer::kPaths, Peer::kReachable}));
  EXPECT_TRUE(IsImpaired({Peer::kNoRdma, Peer::kNoRdma, Peer::kReachable}));
  EXPECT_TRUE(IsImpaired({Peer::kLossy, Peer::kLossy, Peer::kUnknown, Peer::kUnknown, Peer::kUnknown}));
  EXPECT_FALSE(IsImpaired({Peer::kMtu, Peer::kReachable, Peer::kReachable}));
  EXPECT_FALSE(IsImpaired({Peer::kMtu, Peer::kMtu, Peer::kReachable, Peer::kReachable}))
      << "half may be a leaf's";
  EXPECT_FALSE(IsImpaired({Peer::kMtu})) << "that may be the peer's";
  EXPECT_FALSE(IsImpaired({Peer::kSilent, Peer::kSilent, Peer::kSilent, Peer::kReachable}))
      << "they may be switched off";
}

// How railheadd reports a node's reachability: the metrics of docs/reference/metrics.md, and the log.

MetricsText PageOf(const reachability::ReachabilityReport& report) {
  const Published<reachability::ReachabilityReport> published(report);
  MetricRegistry metrics;
  RegisterReachability(metrics, published);
  MetricsText read = ParseMetrics(metrics.Page(ExpositionFormat::kText), false);
  EXPECT_EQ(read.errors, std::vector<std::string>{});
  return read;
}

reachability::PodReachability PodOn(const std::string& rail, reachability::ReachabilityState state) {
  reachability::PodReachability pod;
  pod.pod_namespace = "training";
  pod.pod = "job-0";
  pod.interface = "net1";
  pod.rail = rail;
  pod.device = "0000:40:00.2";
  pod.state = state;
  return pod;
}

TEST(ReachabilityMetricsTest, ARailThatIsProbedByRdma) {
  reachability::ReachabilityReport report = ReportOf(0, 3, {{{0, 2}, reachability::PeerState::kNoRdma}});
  reachability::RailReachability& rail = report.rails[0];
  rail.rdma_probes = 80;
  rail.rdma_answers = 40;
  EXPECT_TRUE(PageOf(report).families["railhead_rail_rdma_probes"].samples.empty()) << "nobody wants it";
  rail.rdma = reachability::RdmaReachability{"", "its PF has no RDMA device", 0};
  EXPECT_TRUE(PageOf(report).families["railhead_rail_rdma_probes"].samples.empty());
  rail.rdma = reachability::RdmaReachability{"mlx5_0", "", 3};
  MetricsText page = PageOf(report);
  EXPECT_EQ(page.Value("railhead_rail_rdma_probes_total", {{"rail", "rail0"}}), 80);
  EXPECT_EQ(page.Value("railhead_rail_rdma_probe_answers_total", {{"rail", "rail0"}}), 40);
  EXPECT_EQ(page.Value("railhead_rail_peers", {{"rail", "rail0"}, {"state", "noRdma"}}), 1);
}

TEST(ReachabilityMetricsTest, ARail) {
  reachability::ReachabilityReport report =
      ReportOf(0, 6, {{{0, 2}, reachability::PeerState::kSilent}, {{0, 3}, reachability::PeerState::kPaths}});
  report.rails[0].state = reachability::ReachabilityState::kDegraded;
  report.rails[0].peers[0].rtt = std::chrono::microseconds(30);
  report.rails[0].stale = 3;
  report.pods = {PodOn("rail0", reachability::ReachabilityState::kDead)};
  MetricsText page = PageOf(report);
  const std::map<std::string, std::string> rail = {{"rail", "rail0"}};
  EXPECT_EQ(page.Value("railhead_rail_reachable", rail), 1) << "some of it";
  EXPECT_EQ(page.Value("railhead_rail_gateway_answers", rail), 1);
  EXPECT_EQ(page.Value("railhead_rail_peers", {{"rail", "rail0"}, {"state", "reachable"}}), 3);
  EXPECT_EQ(page.Value("railhead_rail_peers", {{"rail", "rail0"}, {"state", "silent"}}), 1);
  EXPECT_EQ(page.Value("railhead_rail_peers", {{"rail", "rail0"}, {"state", "oneWay"}}), 0);
  EXPECT_EQ(page.families["railhead_rail_peers"].samples.size(), 8U) << "one for each state";
  EXPECT_EQ(page.Value("railhead_rail_probes_total", rail), 1000);
  EXPECT_EQ(page.Value("railhead_rail_probe_answers_total", rail), 990);
  EXPECT_EQ(page.Value("railhead_rail_stale_neighbours_total", rail), 3);
  EXPECT_DOUBLE_EQ(page.Value("railhead_rail_peer_rtt_seconds", rail), 12e-6);
  EXPECT_DOUBLE_EQ(page.Value("railhead_rail_peer_rtt_max_seconds", rail), 30e-6);
  EXPECT_EQ(
      page.Value("railhead_rail_bad_peer", {{"rail", "rail0"}, {"peer", "gpu-002"}, {"state", "silent"}}), 1);
  EXPECT_EQ(page.families["railhead_rail_bad_peer"].samples.size(), 2U);
  EXPECT_EQ(page.Value("railhead_pod_rail_reachable", {{"namespace", "training"},
                                                       {"pod", "job-0"},
                                                       {"interface", "net1"},
                                                       {"rail", "rail0"},
                                                       {"device", "0000:40:00.2"}}),
            0);
  EXPECT_EQ(page.errors, std::vector<std::string>{});
}

TEST(ReachabilityMetricsTest, WhatIsNotKnownIsNotThere) {
  reachability::ReachabilityReport report{
      "n", ReachabilityWall(0), {}, {PodOn("rail0", reachability::ReachabilityState::kUnknown)}};
  report.rails.push_back(RailOf("rail0", reachability::ReachabilityState::kUnknown, {}));
  report.rails[0].gateway.reset();
  report.rails[0].probe_address.reset();
  const MetricsText page = PageOf(report);
  for (const auto& [name, family] : page.families) EXPECT_TRUE(family.samples.empty()) << name;
}

TEST(ReachabilityMetricsTest, TheWorstPeersAreNamed) {
  BadPairs bad;
  for (int i = 1; i <= 40; ++i)
    bad[{0, i}] = i % 2 == 0 ? reachability::PeerState::kLossy : reachability::PeerState::kSilent;
  bad[{0, 40}] = reachability::PeerState::kSilent;
  const MetricsText page = PageOf(ReportOf(0, 60, bad));
  const auto& named = page.families.at("railhead_rail_bad_peer").samples;
  EXPECT_EQ(named.size(), reachability::kMostBadPeers);
  for (const MetricSample& sample : named) EXPECT_EQ(sample.labels.at("state"), "silent");
}

TEST(ReachabilityMetricsTest, AreDocumented) {
  const auto documented = DocumentedMetrics(MetricsPageName::kDaemon);
  const MetricsText page = PageOf(ReportOf(0, 2, {}));
  EXPECT_EQ(page.families.size(), 12U);
  for (const auto& [name, family] : page.families) {
    const auto found = documented.find(name);
    ASSERT_NE(found, documented.end()) << "docs/reference/metrics.md lacks: | `" << name << "` | "
                                       << family.type << " | | " << family.help << " |";
    EXPECT_EQ(found->second.type, family.type) << name;
    EXPECT_EQ(found->second.help, family.help) << name;
  }
}

class ReachabilityLogTest : public ::testing::Test {
 protected:
  // "level message key=value ...", without the time.
  static std::vector<std::string> Logged(const reachability::ReachabilityReport& before,
                                         const reachability::ReachabilityReport& now) {
    ::testing::internal::CaptureStderr();
    {
      Log log("info");
      LogReachability(&log, before, now);
    }
    std::vector<std::string> lines;
    for (const std::string& line : Split(::testing::internal::GetCapturedStderr(), '\n')) {
      if (line.empty()) continue;
      const auto json = nlohmann::json::parse(line);
      lines.push_back(json["level"].get<std::string>() + " " + json["msg"].get<std::string>());
      for (const char* key : {"rail", "peers", "pod", "gateway", "at", "because"}) {
        if (!json.value(key, "").empty()) lines.back() += "; " + json[key].get<std::string>();
      }
    }
    return lines;
  }
  using Lines = std::vector<std::string>;
};

TEST_F(ReachabilityLogTest, WhyRdmaIsNotProbedOnce) {
  reachability::ReachabilityReport report = ReportOf(0, 3, {});
  const reachability::ReachabilityReport before = report;
  report.rails[0].rdma = reachability::RdmaReachability{"", "its PF has no RDMA device", 0};
  EXPECT_EQ(Logged(before, report),
            Lines{"warning a rail is not probed by RDMA; rail0; its PF has no RDMA device"});
  EXPECT_EQ(Logged(report, report), Lines{});
}

TEST_F(ReachabilityLogTest, NothingNew) {
  const reachability::ReachabilityReport report =
      ReportOf(0, 6, {{{0, 2}, reachability::PeerState::kSilent}});
  EXPECT_EQ(Logged(report, report), Lines{});
  EXPECT_EQ(Logged({}, {}), Lines{});
}

TEST_F(ReachabilityLogTest, ARailThatFailsAndComesBack) {
  const reachability::ReachabilityReport well = ReportOf(0, 6, {});
  BadPairs bad;
  for (int i = 1; i < 6; ++i)
    bad[{0, i}] = i == 5 ? reachability::PeerState::kLossy : reachability::PeerState::kSilent;
  reachability::ReachabilityReport faulty = ReportOf(0, 6, bad);
  faulty.rails[0].state = reachability::ReachabilityState::kDead;
  faulty.rails[0].because = "nobody answers";
  faulty.rails[0].gateway->answers = false;
  EXPECT_EQ(Logged(well, faulty), (Lines{"warning a rail reaches nothing; rail0; nobody answers",
                                         "warning a rail's gateway does not answer; rail0; 10.0.0.254",
                                         "warning peers of a rail are faulty; rail0; "
                                         "gpu-[001-004] silent, gpu-005 lossy"}));
  EXPECT_EQ(Logged(faulty, well),
            (Lines{"info a rail reaches its gateway and all peers; rail0",
                   "info a rail's gateway answers again; rail0; 10.0.0.254",
                   "info peers of a rail are reachable again; rail0; gpu-[001-005] reachable"}));
  faulty.rails[0].state = reachability::ReachabilityState::kDegraded;
  EXPECT_EQ(Logged(well, faulty)[0],
            "warning a rail does not reach its gateway or some peers; rail0; nobody answers");
  faulty.rails[0].state = reachability::ReachabilityState::kUnknown;
  EXPECT_EQ(Logged(well, faulty)[0], "info the reachability of a rail is unknown; rail0; nobody answers");
}

TEST_F(ReachabilityLogTest, WhatIsFirstKnownIsNewsOfTheRailOnly) {
  EXPECT_EQ(Logged({}, ReportOf(0, 6, {})), Lines{"info a rail reaches its gateway and all peers; rail0"});
}

TEST_F(ReachabilityLogTest, APod) {
  reachability::ReachabilityReport before;
  reachability::ReachabilityReport now;
  now.pods = {PodOn("rail0", reachability::ReachabilityState::kReachable)};
  EXPECT_EQ(Logged(before, now), Lines{}) << "a pod that starts as it should is no news";
  before = now;
  now.pods[0].state = reachability::ReachabilityState::kDead;
  now.pods[0].because = "nobody answers";
  EXPECT_EQ(
      Logged(before, now),
      Lines{"warning a pod's interface reaches nothing on its rail; rail0; training/job-0; nobody answers"});
  before = now;
  EXPECT_EQ(Logged(before, now), Lines{});
  now.pods[0].state = reachability::ReachabilityState::kDegraded;
  EXPECT_EQ(Logged(before, now).size(), 1U);
  before = now;
  now.pods[0].state = reachability::ReachabilityState::kReachable;
  now.pods[0].because.clear();
  EXPECT_EQ(Logged(before, now),
            Lines{"info a pod's interface reaches its rail again; rail0; training/job-0"});
}

// Once, though the rounds until the next look all have it.
TEST_F(ReachabilityLogTest, AStaleNeighbour) {
  reachability::ReachabilityReport before;
  before.pods = {PodOn("rail0", reachability::ReachabilityState::kReachable)};
  reachability::ReachabilityReport now = before;
  now.pods[0].stale = {*IpAddress::Parse("10.0.0.254"), *IpAddress::Parse("10.0.0.2")};
  EXPECT_EQ(Logged(before, now), Lines{"warning hosts had a stale MAC address for a pod; railheadd fixed it "
                                       "by announcing the address again; "
                                       "rail0; training/job-0; 10.0.0.254, 10.0.0.2"});
  EXPECT_EQ(Logged(now, now), Lines{});
  EXPECT_EQ(Logged(now, before), Lines{});
}

}  // namespace
}  // namespace railhead::testing

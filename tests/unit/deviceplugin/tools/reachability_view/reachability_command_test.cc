// `railctl reachability` as a process.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "netns/json/record_io.h"
#include "tests/support/process.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/reachability/reachability_values.h"

namespace railhead::testing {
namespace {

using std::chrono::seconds;
using Wall = std::chrono::system_clock;

class ReachabilityCommandTest : public ::testing::Test {
 protected:
  ProcessOutput Run(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {RAILCTL, "reachability"});
    return RunProcess(arguments, {{"RAILHEAD_ROOT", temp_.directory()}}, input);
  }
  void Save(const reachability::ReachabilityReport& report) {
    ASSERT_TRUE(WriteReachabilityReport(temp_.root(), report));
  }
  static reachability::ReachabilityReport Now(reachability::ReachabilityReport report) {
    report.time = Wall::now();
    for (reachability::RailReachability& rail : report.rails) {
      rail.since = Wall::now() - seconds(7200 * 3);
      for (reachability::PeerReachability& peer : rail.peers) peer.since = Wall::now() - seconds(600);
    }
    return report;
  }
  static std::string Line(const reachability::ReachabilityReport& report) {
    return ToJson(WithoutCommonTimes(report)).dump() + "\n";
  }
  static std::string Lines(const std::vector<reachability::ReachabilityReport>& reports) {
    std::string lines;
    for (const reachability::ReachabilityReport& report : reports) lines += Line(report);
    return lines;
  }

  TempRoot temp_;
};

TEST_F(ReachabilityCommandTest, AllIsWell) {
  Save(Now(ReportOf(0, 3, {})));
  const auto output = Run({});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(output.out,
            "RAIL   PF   STATE      SINCE  GATEWAY  PEERS        RTT   BECAUSE\n"
            "rail0  pf0  reachable  6h     answers  2 reachable  12us  -\n");
  const auto all = Run({"--all"});
  EXPECT_EQ(all.status, 0);
  EXPECT_NE(all.out.find("rail0  gpu-002  10.0.0.1  reachable  10m    80/80     12us  -\n"),
            std::string::npos)
      << all.out;
}

TEST_F(ReachabilityCommandTest, NetIsItsAlias) {
  Save(Now(ReportOf(0, 3, {})));
  const auto alias = RunProcess({RAILCTL, "net"}, {{"RAILHEAD_ROOT", temp_.directory()}}, "");
  EXPECT_EQ(alias.status, 0) << alias.err;
  EXPECT_EQ(alias.out, Run({}).out);
}

TEST_F(ReachabilityCommandTest, WhatIsNotWell) {
  reachability::ReachabilityReport report = Now(ReportOf(
      0, 4, {{{0, 2}, reachability::PeerState::kSilent}, {{0, 3}, reachability::PeerState::kUnknown}}));
  report.rails[0].state = reachability::ReachabilityState::kDegraded;
  report.rails[0].because = "one peer is silent";
  report.rails[0].gateway->answers = false;
  report.rails[0].peers[1].because = "no answer of 80";
  report.rails.push_back(RailOf("rail1", reachability::ReachabilityState::kUnknown, {}));
  report.rails[1].gateway.reset();
  report.rails[1].pf = "";
  report.rails[1].since = {};
  reachability::PodReachability pod{"training",
                                    "job-0",
                                    "net1",
                                    "rail0",
                                    "0000:40:00.2",
                                    reachability::ReachabilityState::kDead,
                                    Wall::now() - seconds(300),
                                    "nobody answers",
                                    false,
                                    12,
                                    0};
  report.pods = {pod};
  pod.pod = "well";
  pod.state = reachability::ReachabilityState::kReachable;
  report.pods.push_back(pod);
  Save(report);
  const auto output = Run({});
  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(
      output.out,
      "RAIL   PF   STATE     SINCE  GATEWAY  PEERS                             RTT   BECAUSE\n"
      "rail0  pf0  degraded  6h     silent   1 reachable, 1 silent, 1 unknown  12us  one peer is silent\n"
      "rail1  -    unknown   -      -        -                                 -     -\n"
      "\n"
      "RAIL   PEER     ADDRESS   STATE   SINCE  ANSWERED  RTT  BECAUSE\n"
      "rail0  gpu-002  10.0.0.1  silent  10m    0/80      -    no answer of 80\n"
      "\n"
      "POD             INTERFACE  RAIL   DEVICE        STATE  SINCE  ANSWERED  BECAUSE\n"
      "training/job-0  net1       rail0  0000:40:00.2  dead   5m     0/12      nobody answers\n");
  EXPECT_NE(Run({"--all"}).out.find("training/well"), std::string::npos);
  const auto one_rail = Run({"--rail", "rail1"});
  EXPECT_EQ(one_rail.status, 0) << "what is not known is no fault\n" << one_rail.out;
  EXPECT_EQ(one_rail.out.find("rail0"), std::string::npos) << one_rail.out;
  const auto none = Run({"--rail", "rail7"});
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("no such rail: 'rail7'\n  rails: rail0, rail1\n"), std::string::npos) << none.err;
}

TEST_F(ReachabilityCommandTest, ADeadRailIsNoThousandLines) {
  reachability::ReachabilityReport report = Now(ReportOf(0, 1, {}));
  for (int i = 1; i <= 100; ++i)
    report.rails[0].peers.push_back(PeerOf(NodeNumber(i), reachability::PeerState::kSilent));
  Save(report);
  const auto output = Run({});
  EXPECT_NE(output.out.find("rail0: 84 more peers (--all)\n"), std::string::npos) << output.out;
  EXPECT_EQ(output.out.find("gpu-017"), std::string::npos);
  EXPECT_NE(Run({"--all"}).out.find("gpu-100"), std::string::npos);
}

TEST_F(ReachabilityCommandTest, AsJsonOnOneLine) {
  const reachability::ReachabilityReport report = Now(ReportOf(0, 3, {}));
  Save(report);
  const auto output = Run({"-o", "json"});
  EXPECT_EQ(output.status, 0);
  EXPECT_EQ(output.out, temp_.Read("/run/railhead/reachability.json")) << "the same as in the file";
}

TEST_F(ReachabilityCommandTest, WithoutRailheadd) {
  auto output = Run({});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("is it running?"), std::string::npos) << output.err;
  Save(ReportOf(0, 3, {}));  // of long ago, or of a time to come
  reachability::ReachabilityReport report = Now(ReportOf(0, 3, {}));
  report.time = Wall::now() - seconds(3600);
  Save(report);
  output = Run({});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("railheadd does not run"), std::string::npos) << output.err;
  EXPECT_NE(output.out.find("2 reachable"), std::string::npos) << "it may be true all the same";
  temp_.Write("/run/railhead/reachability.json", "{}");
  EXPECT_EQ(Run({}).status, 1);
}

TEST_F(ReachabilityCommandTest, ManyNodes) {
  const auto well = Run({"-"}, Lines(Cluster(4, {})));
  EXPECT_EQ(well.status, 0) << well.err;
  EXPECT_EQ(well.out, "rail0: 4 nodes, all reach all\n") << "and no colours: this is no terminal";
  const auto reports =
      Cluster(4, {{{0, 1}, reachability::PeerState::kSilent}, {{1, 0}, reachability::PeerState::kSilent}});
  temp_.Write("/a.json", Line(reports[0]) + Line(reports[1]));
  const std::string rest = ToJson(WithoutCommonTimes(reports[2])).dump(2) + Line(reports[3]);
  const auto faulty = Run({temp_.directory() + "/a.json", "-"}, rest);
  EXPECT_EQ(faulty.status, 1);
  EXPECT_EQ(faulty.err, "");
  EXPECT_EQ(faulty.out,
            "rail0: between gpu-000 and gpu-001 (silent 2)\n"
            "\n"
            "rail0: 4 nodes\n"
            "                       12\n"
            "  1 gpu-[000,001] (2)  X.\n"
            "  2 gpu-[002,003] (2)  ..\n"
            "\n"
            "a row says of a column:  . reachable  X silent\n");
  const auto json = nlohmann::json::parse(Run({"-", "-o", "json"}, Lines(reports)).out);
  EXPECT_EQ(json["rails"][0]["rows"][0], "-X..");
  EXPECT_EQ(json["nodes"][3], "gpu-003");
  EXPECT_EQ(json["marks"]["X"], "silent");
  EXPECT_EQ(json["faults"][0]["text"], "rail0: between gpu-000 and gpu-001 (silent 2)");
}

TEST_F(ReachabilityCommandTest, OneRailOfManyNodes) {
  auto reports = Cluster(3, {{{0, 1}, reachability::PeerState::kSilent}});
  for (int i = 0; i < 2; ++i)
    reports[static_cast<std::size_t>(i)].rails.push_back(ReportOf(i, 2, {}, "rail1").rails[0]);
  const auto output = Run({"-", "--rail", "rail1"}, Lines(reports));
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(output.out.find("rail0"), std::string::npos) << output.out;
  const auto none = Run({"-", "--rail", "rail2"}, Lines(reports));
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("rails: rail0, rail1"), std::string::npos) << none.err;
}

TEST_F(ReachabilityCommandTest, OneThatEnded) {
  auto reports = Cluster(3, {});
  reports[1].time -= seconds(3600);
  const auto output = Run({"-"}, Lines(reports));
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("gpu-001: as of "), std::string::npos) << output.err;
  EXPECT_EQ(output.err.find("gpu-000"), std::string::npos) << output.err;
}

TEST_F(ReachabilityCommandTest, RefusesWhatIsNoReport) {
  const auto refused = [&](const std::string& input) {
    const auto output = Run({"-"}, input);
    EXPECT_EQ(output.status, 1);
    EXPECT_EQ(output.out, "");
    return output.err;
  };
  EXPECT_NE(refused("").find("the files have no report"), std::string::npos);
  EXPECT_NE(refused("[]").find("standard input#1"), std::string::npos);
  EXPECT_NE(refused(Lines({ReportOf(0, 2, {}), ReportOf(0, 2, {})})).find("two reports are of node gpu-000"),
            std::string::npos);
  const auto none = Run({"/none.json"});
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("/none.json: No such file"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace railhead::testing

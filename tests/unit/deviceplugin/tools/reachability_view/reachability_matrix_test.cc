// Matrices of many nodes, the common causes of their faults, and how both are shown.
#include "deviceplugin/tools/reachability_view/reachability_matrix.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "deviceplugin/services/reachability/folded_names.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/tools/reachability_view/reachability_faults.h"
#include "deviceplugin/tools/reachability_view/reachability_report_stream.h"
#include "deviceplugin/tools/reachability_view/reachability_text.h"
#include "netns/json/record_io.h"
#include "tests/support/rapidcheck.h"
#include "tests/unit/deviceplugin/services/reachability/reachability_values.h"

namespace railhead::testing {
namespace {

reachability_view::ReachabilityMatrix MatrixOf(const std::vector<reachability::ReachabilityReport>& reports) {
  reachability_view::ReachabilityMatrixBuilder builder;
  for (const reachability::ReachabilityReport& report : reports) EXPECT_TRUE(builder.Add(report));
  return builder.Build();
}

// Both directions.
BadPairs Between(const std::vector<int>& some, const std::vector<int>& others,
                 reachability::PeerState state) {
  BadPairs bad;
  for (const int a : some) {
    for (const int b : others) {
      if (a != b) bad[{a, b}] = bad[{b, a}] = state;
    }
  }
  return bad;
}

std::vector<int> Numbers(int from, int below) {
  std::vector<int> numbers;
  for (int i = from; i < below; ++i) numbers.push_back(i);
  return numbers;
}

std::vector<std::string> ListFaults(const std::vector<reachability::ReachabilityReport>& reports) {
  std::vector<std::string> texts;
  for (const reachability_view::ReachabilityFault& fault : ExplainFaults(MatrixOf(reports)))
    texts.push_back(TextOf(fault));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(NodeNamesTest, Order) {
  EXPECT_TRUE(reachability::NaturallyLess("gpu-2", "gpu-10"));
  EXPECT_FALSE(reachability::NaturallyLess("gpu-10", "gpu-2"));
  EXPECT_TRUE(reachability::NaturallyLess("a2b10", "a10b2"));
  EXPECT_TRUE(reachability::NaturallyLess("gpu", "gpu-1"));
  EXPECT_TRUE(reachability::NaturallyLess("1", "a"));
  EXPECT_FALSE(reachability::NaturallyLess("gpu-1", "gpu-1"));
  EXPECT_NE(reachability::NaturallyLess("gpu-01", "gpu-1"), reachability::NaturallyLess("gpu-1", "gpu-01"))
      << "but never the same";
}

TEST(NodeNamesTest, Folded) {
  EXPECT_EQ(reachability::FoldedNames({}), "");
  EXPECT_EQ(reachability::FoldedNames({"gpu-007"}), "gpu-007");
  EXPECT_EQ(reachability::FoldedNames({"gpu-001", "gpu-003", "gpu-002", "gpu-007", "gpu-008"}),
            "gpu-[001-003,007,008]");
  EXPECT_EQ(reachability::FoldedNames({"gpu-9", "gpu-10", "gpu-11", "gpu-12"}), "gpu-9,gpu-[10-12]");
  EXPECT_EQ(reachability::FoldedNames({"b", "a", "a1x", "a2x", "a3x"}), "a,a[1-3]x,b");
  EXPECT_EQ(reachability::FoldedNames({"n1.dc1.example", "n2.dc1.example", "n3.dc2.example"}),
            "n[1,2].dc1.example,n3.dc2.example");
  EXPECT_EQ(reachability::FoldedNames({"x00000000000000000001", "x00000000000000000002"}),
            "x00000000000000000001,x00000000000000000002");
}

// Every name is there once, by its number or by itself.
TEST(NodeNamesTest, FoldingLosesNobody) {
  ExpectProperty([] {
    const auto numbers = *rc::gen::container<std::set<int>>(rc::gen::inRange(0, 400));
    std::vector<std::string> names;
    for (const int number : numbers) names.push_back(NodeNumber(number));
    std::set<int> read;
    std::string text = reachability::FoldedNames(names);
    if (numbers.size() > 1) text = text.substr(5, text.size() - 6);
    if (numbers.size() == 1) text = text.substr(4);
    std::istringstream ranges(text);
    for (std::string range; std::getline(ranges, range, ',');) {
      const auto dash = range.find('-');
      const int last = std::stoi(range.substr(dash == std::string::npos ? 0 : dash + 1));
      for (int i = std::stoi(range); i <= last; ++i) RC_ASSERT(read.insert(i).second);
    }
    RC_ASSERT(read == numbers);
  });
}

TEST(ReachabilityMatrixTest, RowsAreWhoSaysIt) {
  auto reports = Cluster(3, {{{0, 1}, reachability::PeerState::kOneWay},
                             {{1, 0}, reachability::PeerState::kSilent},
                             {{1, 2}, reachability::PeerState::kMtu}});
  reports.pop_back();
  const reachability_view::ReachabilityMatrix matrix = MatrixOf(reports);
  EXPECT_EQ(matrix.nodes, (Texts{"gpu-000", "gpu-001", "gpu-002"}));
  EXPECT_EQ(matrix.reported, (std::vector<bool>{true, true, false}));
  ASSERT_EQ(matrix.rails.size(), 1U);
  EXPECT_EQ(matrix.rails[0].rows, (Texts{"-<.", "X-m", "__-"}));
}

TEST(ReachabilityMatrixTest, ANodeTwice) {
  reachability_view::ReachabilityMatrixBuilder builder;
  EXPECT_TRUE(builder.Add(ReportOf(0, 2, {})));
  EXPECT_FALSE(builder.Add(ReportOf(0, 2, {})));
}

TEST(ReachabilityMatrixTest, MarksAreDifferentAndKnown) {
  std::set<char> marks;
  for (int i = 0; i <= static_cast<int>(reachability::PeerState::kSilent); ++i) {
    const auto state = static_cast<reachability::PeerState>(i);
    EXPECT_TRUE(marks.insert(reachability_view::MarkOf(state)).second);
    EXPECT_EQ(reachability_view::StateOfMark(reachability_view::MarkOf(state)), state);
    EXPECT_EQ(reachability_view::MeaningOf(reachability_view::MarkOf(state)), WordOf(state));
    EXPECT_EQ(reachability_view::IsFault(reachability_view::MarkOf(state)),
              state > reachability::PeerState::kReachable);
  }
  EXPECT_FALSE(reachability_view::IsFault(reachability_view::kMarkSelf) ||
               reachability_view::IsFault(reachability_view::kMarkNotReported));
}

// Folded and unfolded, the matrix is the same.
TEST(ReachabilityMatrixTest, NodesThatAreAlikeAre) {
  ExpectProperty([] {
    const int nodes = *rc::gen::inRange(1, 9);
    BadPairs bad;
    for (int i = *rc::gen::inRange(0, 6); i > 0; --i)
      bad[{*rc::gen::inRange(0, nodes), *rc::gen::inRange(0, nodes)}] =
          static_cast<reachability::PeerState>(*rc::gen::inRange(0, 7));
    const reachability_view::ReachabilityMatrix matrix = MatrixOf(Cluster(nodes, bad));
    const reachability_view::RailMatrix& rail = matrix.rails[0];
    const auto groups = AlikeNodes(rail);
    std::size_t count = 0;
    for (const auto& from : groups) {
      count += from.size();
      for (const auto& to : groups) {
        std::set<char> marks;
        for (const std::size_t a : from) {
          for (const std::size_t b : to) {
            if (a != b) marks.insert(rail.rows[a][b]);
          }
        }
        RC_ASSERT(marks.size() <= 1U);
      }
    }
    RC_ASSERT(count == static_cast<std::size_t>(nodes));
  });
}

TEST(ReachabilityFaultsTest, NoneWhereAllIsWell) {
  EXPECT_EQ(ListFaults(Cluster(5, {})), Texts{});
  EXPECT_EQ(ListFaults(Cluster(1, {})), Texts{});
  EXPECT_EQ(ListFaults({}), Texts{});
  EXPECT_EQ(ListFaults(Cluster(3, Between({0}, {1, 2}, reachability::PeerState::kUnknown))), Texts{})
      << "not known is no fault";
}

TEST(ReachabilityFaultsTest, ANodeThatReachesNobody) {
  EXPECT_EQ(ListFaults(Cluster(40, Between({17}, Numbers(0, 40), reachability::PeerState::kSilent))),
            Texts{"rail0: gpu-017 reaches no other node (silent 78)"});
  auto bad = Between({17, 23}, Numbers(0, 40), reachability::PeerState::kSilent);
  EXPECT_EQ(ListFaults(Cluster(40, bad)), Texts{"rail0: gpu-[017,023] reach no other node (silent 154)"});
  bad.merge(Between({3}, Numbers(0, 40), reachability::PeerState::kMtu));
  EXPECT_EQ(ListFaults(Cluster(40, bad)), (Texts{"rail0: gpu-003 has a fault with all others (mtu 74)",
                                                 "rail0: gpu-[017,023] reach no other node (silent 154)"}));
}

TEST(ReachabilityFaultsTest, ANodeWithoutAReport) {
  auto reports = Cluster(4, Between({3}, Numbers(0, 4), reachability::PeerState::kSilent));
  reports.pop_back();
  EXPECT_EQ(ListFaults(reports), Texts{"rail0: gpu-003 reaches no other node (silent 3)"});
}

TEST(ReachabilityFaultsTest, TwoPartsOfARail) {
  EXPECT_EQ(ListFaults(Cluster(8, Between(Numbers(0, 3), Numbers(3, 8), reachability::PeerState::kSilent))),
            Texts{"rail0: between gpu-[000-002] and gpu-[003-007] (silent 30)"});
}

TEST(ReachabilityFaultsTest, FiveHundredPairsAreOneLineAlsoWithOthersAmongThem) {
  auto bad = Between(Numbers(0, 20), Numbers(20, 45), reachability::PeerState::kSilent);
  ASSERT_EQ(bad.size(), 1000U);
  bad.merge(Between({0}, {5}, reachability::PeerState::kLossy));
  bad.merge(Between({30}, {31}, reachability::PeerState::kPaths));
  const Texts faults = ListFaults(Cluster(60, bad));
  EXPECT_EQ(faults, (Texts{"rail0: between gpu-[000-019] and gpu-[020-044] (silent 1000)",
                           "rail0: between gpu-000 and gpu-005 (lossy 2)",
                           "rail0: between gpu-030 and gpu-031 (paths 2)"}));
}

TEST(ReachabilityFaultsTest, AWholeRail) {
  EXPECT_EQ(ListFaults(Cluster(4, Between(Numbers(0, 4), Numbers(0, 4), reachability::PeerState::kSilent))),
            Texts{"rail0: no node reaches another: gpu-[000-003] (silent 12)"});
  EXPECT_EQ(ListFaults(Cluster(4, Between(Numbers(0, 4), Numbers(0, 4), reachability::PeerState::kLossy))),
            Texts{"rail0: every pair has a fault: gpu-[000-003] (lossy 12)"});
  EXPECT_EQ(ListFaults(Cluster(2, Between({0}, {1}, reachability::PeerState::kSilent))),
            Texts{"rail0: between gpu-000 and gpu-001 (silent 2)"});
}

TEST(ReachabilityFaultsTest, OneWay) {
  EXPECT_EQ(ListFaults(Cluster(
                3, {{{0, 1}, reachability::PeerState::kOneWay}, {{1, 0}, reachability::PeerState::kSilent}})),
            Texts{"rail0: between gpu-000 and gpu-001 (silent 1, oneWay 1)"});
}

std::vector<reachability::ReachabilityReport> OnRails(int rails, int nodes, const std::set<int>& faulty,
                                                      const BadPairs& bad) {
  auto reports = Cluster(nodes, {});
  for (int from = 0; from < nodes; ++from) {
    auto& report = reports[static_cast<std::size_t>(from)];
    report.rails.clear();
    for (int rail = 0; rail < rails; ++rail)
      report.rails.push_back(
          ReportOf(from, nodes, faulty.contains(rail) ? bad : BadPairs{}, "rail" + std::to_string(rail))
              .rails[0]);
  }
  return reports;
}

TEST(ReachabilityFaultsTest, WhatIsTheSameOnRailsIsSaidOnce) {
  const auto dead = Between({1}, Numbers(0, 4), reachability::PeerState::kSilent);
  EXPECT_EQ(ListFaults(OnRails(8, 4, {0, 1, 2, 5}, dead)),
            Texts{"rail[0-2,5]: gpu-001 reaches no other node (silent 24)"});
  EXPECT_EQ(ListFaults(OnRails(2, 4, {0, 1}, dead)),
            Texts{"all rails: gpu-001 reaches no other node (silent 12)"});
}

TEST(ReachabilityFaultsTest, Gateways) {
  auto reports = OnRails(2, 3, {}, {});
  for (reachability::ReachabilityReport& report : reports) report.rails[1].gateway->answers = false;
  reports[1].rails[0].gateway->answers = false;
  EXPECT_EQ(ListFaults(reports), (Texts{"rail0: the gateway answers all but gpu-001",
                                        "rail1: the gateway answers no node: gpu-[000-002]"}));
}

// Each bad pair is explained, and no good pair is blamed.
TEST(ReachabilityFaultsTest, EveryPairIsReportedOnce) {
  ExpectProperty([] {
    const int nodes = *rc::gen::inRange(1, 12);
    BadPairs bad;
    for (int i = *rc::gen::inRange(0, 60); i > 0; --i) {
      const std::pair pair(*rc::gen::inRange(0, nodes), *rc::gen::inRange(0, nodes));
      if (pair.first != pair.second)
        bad[pair] = static_cast<reachability::PeerState>(*rc::gen::inRange(2, 7));
    }
    std::map<reachability::PeerState, std::size_t> explained;
    std::map<reachability::PeerState, std::size_t> wanted;
    for (const auto& [pair, state] : bad) ++wanted[state];
    const reachability_view::ReachabilityMatrix matrix = MatrixOf(Cluster(nodes, bad));
    for (const reachability_view::ReachabilityFault& fault : ExplainFaults(matrix)) {
      for (const auto& [state, count] : fault.pairs) explained[state] += count;
      for (const std::string& a : fault.nodes) {
        for (const std::string& b : fault.others) {
          const int from = std::stoi(a.substr(4));
          const int to = std::stoi(b.substr(4));
          RC_ASSERT(bad.contains({from, to}) || bad.contains({to, from}));
        }
      }
    }
    RC_ASSERT(explained == wanted);
  });
}

TEST(ReachabilityFaultsTest, AsJson) {
  const auto faults = ExplainFaults(MatrixOf(Cluster(4, Between({0}, {1}, reachability::PeerState::kPaths))));
  ASSERT_EQ(faults.size(), 1U);
  const auto json = ToJson(faults[0]);
  EXPECT_EQ(json["kind"], "between");
  EXPECT_EQ(json["rails"], Texts{"rail0"});
  EXPECT_EQ(json["others"], Texts{"gpu-001"});
  EXPECT_EQ(json["pairs"]["paths"], 2);
}

std::string Shown(const std::vector<reachability::ReachabilityReport>& reports,
                  const reachability_view::ReachabilityTextOptions& options = {}) {
  const reachability_view::ReachabilityMatrix matrix = MatrixOf(reports);
  return ReachabilityText(matrix, ExplainFaults(matrix), options);
}

TEST(ReachabilityTextTest, AllIsWell) {
  EXPECT_EQ(Shown(OnRails(8, 40, {}, {})), "rail[0-7]: 40 nodes, all reach all\n");
}

TEST(ReachabilityTextTest, AFaultAndNodesThatAreAlike) {
  const auto reports = OnRails(3, 12, {1}, Between({7}, Numbers(0, 12), reachability::PeerState::kSilent));
  EXPECT_EQ(Shown(reports),
            "rail1: gpu-007 reaches no other node (silent 22)\n"
            "\n"
            "rail[0,2]: 12 nodes, all reach all\n"
            "\n"
            "rail1: 12 nodes\n"
            "                                12\n"
            "  1 gpu-[000-006,008-011] (11)  .X\n"
            "  2 gpu-007                     X-\n"
            "\n"
            "a row says of a column:  . reachable  X silent\n");
}

TEST(ReachabilityTextTest, EveryNode) {
  auto reports = Cluster(11, {{{0, 10}, reachability::PeerState::kLossy}});
  reports.erase(reports.begin() + 9);
  EXPECT_EQ(Shown(reports, {.every_node = true, .colours = false}),
            "rail0: between gpu-000 and gpu-010 (lossy 1)\n"
            "no report of gpu-009\n"
            "\n"
            "rail0: 11 nodes\n"
            "                       11\n"
            "              12345678901\n"
            "   1 gpu-000  -.........~\n"
            "   2 gpu-001  .-.........\n"
            "   3 gpu-002  ..-........\n"
            "   4 gpu-003  ...-.......\n"
            "   5 gpu-004  ....-......\n"
            "   6 gpu-005  .....-.....\n"
            "   7 gpu-006  ......-....\n"
            "   8 gpu-007  .......-...\n"
            "   9 gpu-008  ........-..\n"
            "  10 gpu-009  _________-_\n"
            "  11 gpu-010  ..........-\n"
            "\n"
            "a row says of a column:  . reachable  ~ lossy  _ not reported\n");
}

TEST(ReachabilityTextTest, ColoursAreBesideTheMarks) {
  const auto reports = Cluster(2, {{{0, 1}, reachability::PeerState::kSilent}});
  std::string text = Shown(reports, {.every_node = true, .colours = true});
  EXPECT_NE(text.find("-\x1b[97;41mX\x1b[0m\n"), std::string::npos) << text;
  for (auto at = text.find('\x1b'); at != std::string::npos; at = text.find('\x1b'))
    text.erase(at, text.find('m', at) + 1 - at);
  EXPECT_EQ(text, Shown(reports, {.every_node = true, .colours = false}));
}

TEST(ReachabilitySummaryTest, Rtt) {
  reachability::RailReachability rail = ReportOf(0, 5, {{{0, 4}, reachability::PeerState::kLossy}}).rails[0];
  EXPECT_EQ(SpreadOfRtt(reachability::RailReachability{}), std::nullopt) << "there is nobody";
  int time = 10;
  for (reachability::PeerReachability& peer : rail.peers) peer.rtt = std::chrono::microseconds(time *= 2);
  ASSERT_TRUE(SpreadOfRtt(rail));
  EXPECT_EQ(SpreadOfRtt(rail)->median.count(), 40);
  EXPECT_EQ(SpreadOfRtt(rail)->largest.count(), 80) << "one that is lossy is left out";
}

std::vector<std::string> NodesIn(const std::string& text, std::string* error) {
  std::istringstream in(text);
  reachability_view::ReachabilityReportStream stream(in, "f");
  std::vector<std::string> nodes;
  while (true) {
    const auto report = stream.Next();
    if (!report) *error = Describe(report.error());
    if (!report || !*report) return nodes;
    nodes.push_back((*report)->node);
  }
}

TEST(ReachabilityStreamTest, OneOrMany) {
  reachability::ReachabilityReport odd = ReportOf(1, 2, {});
  odd.node = R"(odd "}{\ name)";
  const auto first = ToJson(WithoutCommonTimes(ReportOf(0, 2, {})));
  const auto second = ToJson(WithoutCommonTimes(odd));
  for (const std::string& text : {first.dump() + "\n" + second.dump() + "\n", first.dump() + second.dump(),
                                  "\n " + first.dump(2) + second.dump(2)}) {
    std::string error;
    EXPECT_EQ(NodesIn(text, &error), (Texts{"gpu-000", odd.node})) << error;
    EXPECT_EQ(error, "");
  }
  std::string error;
  EXPECT_EQ(NodesIn(" \n", &error), Texts{});
  EXPECT_EQ(error, "");
}

TEST(ReachabilityStreamTest, SaysWhichIsWrong) {
  const std::string good = ToJson(WithoutCommonTimes(ReportOf(0, 2, {}))).dump();
  for (const std::string& bad :
       {std::string("}"), std::string("x"), std::string("[]\n"), good.substr(0, good.size() - 1),
        std::string("\"{}"), std::string("{\"a\\"), std::string("{}")}) {
    std::string error;
    EXPECT_EQ(NodesIn(good + bad, &error), Texts{"gpu-000"});
    EXPECT_NE(error.find("f#2"), std::string::npos) << bad << ": " << error;
  }
}

}  // namespace
}  // namespace railhead::testing

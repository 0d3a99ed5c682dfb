// One or two nodes that claim indices, step by step.
#include "deviceplugin/services/node_index/index_claim.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/node_index/index_service.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "tests/support/metrics/metrics_parser.h"
#include "tests/support/service/running.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/node_index/index_support.h"

namespace railhead::node_index {
namespace {

using testing::HasEvent;
using testing::IndexClaimTest;
using testing::kHourMs;
using testing::TestNode;
using Fault = testing::MemoryIndexStore::Fault;
using Kind = IndexEvent::Kind;
using Holders = std::map<int, std::string>;

TEST_F(IndexClaimTest, TakesTheLowestFreeIndexAndKeepsIt) {
  EXPECT_TRUE(HasEvent(a_.Step(), Kind::kClaimed));
  EXPECT_TRUE(HasEvent(b_.Step(), Kind::kClaimed));
  EXPECT_EQ(a_.store().writes(), 1);
  EXPECT_EQ(b_.store().writes(), 1);
  a_.Restart();
  const auto again = a_.Step();
  EXPECT_FALSE(again.problem);
  EXPECT_TRUE(again.events.empty());
  EXPECT_EQ(a_.store().writes(), 0);
  EXPECT_EQ(cluster_.Holders(), (Holders{{0, "a"}, {1, "b"}}));
  EXPECT_EQ(RecordOf(0), (IndexRecord{"a", "uid-of-a", ""}));
}

TEST_F(IndexClaimTest, OnlyAnIndexWithAddressesOnEachRail) {
  a_.needs.fits = [](int index) { return index == 3 || index == 5; };
  b_.needs.fits = a_.needs.fits;
  a_.Step();
  b_.Step();
  EXPECT_EQ(cluster_.Holders(), (Holders{{3, "a"}, {5, "b"}}));
  TestNode late(cluster_, "late");
  late.needs.fits = a_.needs.fits;
  const auto refused = late.Step();
  ASSERT_TRUE(refused.problem);
  EXPECT_EQ(refused.problem->code, ErrorCode::kExhausted);
  Remove(3);
  late.Pass(kHourMs);
  EXPECT_EQ(late.Index(), 3);
}

TEST_F(IndexClaimTest, AListedNodeClaimsItsListedIndex) {
  a_.needs.listed = 6;
  a_.Step();
  EXPECT_EQ(a_.Index(), 6);
  a_.needs.listed.reset();
  a_.Step();
  EXPECT_EQ(a_.Index(), 6) << "the list may be removed";
  a_.needs.listed = 2;
  a_.Step();
  EXPECT_EQ(a_.Index(), 2);
  b_.needs.listed = 2;
  const auto refused = b_.Step();
  EXPECT_TRUE(HasEvent(refused, Kind::kConflict));
  ASSERT_TRUE(refused.problem) << "it lasts until somebody changes the list";
  EXPECT_EQ(refused.problem->code, ErrorCode::kConflict);
  EXPECT_FALSE(b_.Index());
}

TEST_F(IndexClaimTest, WithoutItsListedIndexANodeKeepsItsFormerOne) {
  a_.needs.listed = 5;
  a_.Step();
  b_.Step();
  a_.Hold();
  a_.needs.listed = b_.Index();
  EXPECT_TRUE(a_.Step().problem);
  cluster_.nodes["a"].uid = "new";
  EXPECT_TRUE(a_.Pass(kHourMs).problem);
  EXPECT_EQ(RecordOf(5), (IndexRecord{"a", "new", ""})) << "others free the claim of an earlier uid";
  EXPECT_FALSE(a_.Index());
}

// New pods of a busy rail get addresses by the former index: its claim stays as long as the rail keeps it,
// and for the reuse delay of the last address.
TEST_F(IndexClaimTest, AFormerIndexStaysWhileARailKeepsIt) {
  a_.Step();
  ASSERT_EQ(a_.Index(), 0);
  a_.needs.fits = [](int index) { return index == 5; };
  a_.needs.kept = {0};
  a_.Pass(100 * kHourMs);
  EXPECT_EQ(a_.Index(), 5);
  a_.Hold();  // by the index that the rail keeps, long after the other one was claimed
  a_.Pass(100 * kHourMs);
  EXPECT_EQ(cluster_.Holders(), (Holders{{0, "a"}, {5, "a"}}));
  a_.needs.kept.clear();
  a_.Pass(100 * kHourMs);
  EXPECT_EQ(cluster_.Holders(), (Holders{{0, "a"}, {5, "a"}})) << "a pod still has its address";
  a_.held_ms.clear();
  a_.Pass(100 * kHourMs);
  EXPECT_EQ(cluster_.Holders(), (Holders{{5, "a"}}));
}

TEST_F(IndexClaimTest, ALostAnswerLeavesOneClaim) {
  for (const Fault fault : {Fault::kTimeoutBefore, Fault::kTimeoutAfter, Fault::kDelayed}) {
    for (const bool killed : {false, true}) {
      cluster_.claims.Clear();
      a_.disk.reset();
      a_.Restart();
      a_.store().fault = [fault] { return fault; };
      EXPECT_TRUE(a_.Step().problem);
      EXPECT_FALSE(a_.Index()) << "no answer, no index";
      if (fault != Fault::kTimeoutAfter) {
        b_.disk.reset();
        b_.Restart();
        b_.Step();
      }
      a_.store().fault = [] { return Fault::kNone; };
      if (killed) {
        a_.Restart();
      } else {
        a_.store().DeliverDelayed();
      }
      a_.Pass(kHourMs);
      ASSERT_TRUE(a_.Index());
      int claims = 0;
      for (const auto& [index, holder] : cluster_.Holders()) claims += holder == "a" ? 1 : 0;
      EXPECT_EQ(claims, 1) << static_cast<int>(fault) << killed;
    }
  }
}

TEST_F(IndexClaimTest, ALateRequestMeetsItsOwnRepetition) {
  a_.store().fault = [] { return Fault::kDelayed; };
  EXPECT_TRUE(a_.Step().problem);
  a_.store().fault = [] { return Fault::kNone; };
  a_.Pass(kHourMs);
  a_.store().DeliverDelayed();
  a_.Pass(kHourMs);
  EXPECT_EQ(cluster_.Holders(), (Holders{{0, "a"}}));
}

TEST_F(IndexClaimTest, AReimagedMachineKeepsItsIndex) {
  Write(0, {"b", "uid-of-b", ""});
  a_.Step();
  ASSERT_EQ(a_.Index(), 1);
  Remove(0);
  a_.disk.reset();
  cluster_.nodes["a"].uid = "new";
  a_.Restart();
  EXPECT_TRUE(HasEvent(a_.Step(), Kind::kTakenOver));
  EXPECT_EQ(a_.Index(), 1);
  EXPECT_EQ(RecordOf(1), (IndexRecord{"a", "new", ""}));
}

TEST_F(IndexClaimTest, AnotherMachineOfTheSameNameClaimsNothing) {
  cluster_.nodes["a"].machine = "other";
  const auto refused = a_.Step();
  ASSERT_TRUE(refused.problem);
  EXPECT_NE(refused.problem->message.find("another machine"), std::string::npos);
  cluster_.nodes.erase("a");
  EXPECT_EQ(a_.Step().problem->code, ErrorCode::kNotFound);
  EXPECT_TRUE(cluster_.Holders().empty());
}

TEST_F(IndexClaimTest, ARemovedClaimIsCreatedAgain) {
  a_.Step();
  Remove(0);
  const auto again = a_.Step();
  EXPECT_FALSE(again.problem);
  EXPECT_EQ(cluster_.Holders(), (Holders{{0, "a"}}));
  EXPECT_EQ(a_.Index(), 0);
}

TEST_F(IndexClaimTest, AnIndexThatAnotherNodeHasIsNotUsed) {
  a_.Step();
  Write(0, {"b", "uid-of-b", ""});
  a_.store().fault = [] { return Fault::kUnavailable; };
  a_.Step();
  EXPECT_EQ(a_.Index(), 0) << "without an answer nothing is known";
  a_.store().fault = [] { return Fault::kNone; };
  EXPECT_TRUE(HasEvent(a_.Step(), Kind::kLost));
  EXPECT_FALSE(a_.Index());
  EXPECT_TRUE(HasEvent(a_.Step(), Kind::kClaimed));
  EXPECT_EQ(cluster_.Holders(), (Holders{{0, "b"}, {1, "a"}}));
}

TEST_F(IndexClaimTest, OfTwoNodesThatListAtOnceOneWaits) {
  b_.store().is_seen = [](std::uint64_t) { return false; };
  a_.Step();
  EXPECT_TRUE(HasEvent(b_.Step(), Kind::kConflict));
  b_.store().is_seen = [](std::uint64_t) { return true; };
  b_.Pass(kHourMs);
  ASSERT_TRUE(b_.Index());
  EXPECT_NE(b_.Index(), 0);
  EXPECT_EQ(b_.store().writes(), 2);
}

TEST(IndexNeedsTest, AreThoseOfTheFabric) {
  const auto needs_of = [](const std::string& rail, const std::string& more) {
    const auto fabric =
        ParseFabric(R"({"version": 1, "rails": [{"name": "r", "pf": 0, "subnet": "10.0.0.0/24")" + rail +
                        "}, {\"name\": \"bare\", \"pf\": 1}]" + more + "}",
                    "fabric.json");
    EXPECT_TRUE(fabric) << Describe(fabric.error());
    return IndexNeedsOf(*fabric, "n1");
  };
  const std::string block = R"(, "nodeBlock": 26)";
  const std::string claims = R"(, "addresses": {"index": {"from": "kubernetes"}})";
  EXPECT_FALSE(needs_of(block, ""));
  EXPECT_FALSE(needs_of(block, R"(, "addresses": {"index": {"from": "nodes"}})"));
  EXPECT_FALSE(needs_of("", claims)) << "nothing divides the rail's subnet";
  EXPECT_FALSE(needs_of(block, claims + R"(, "nodes": {"n2": 0})"));
  EXPECT_EQ(needs_of(block, claims + R"(, "nodes": {"n1": 3})")->listed, 3);
  const auto needs = needs_of(block, claims);
  ASSERT_TRUE(needs);
  EXPECT_TRUE(needs->fits(3));
  EXPECT_FALSE(needs->fits(4));
  EXPECT_TRUE(needs_of(R"(, "nodeRanges": {"7": "10.0.0.1-10.0.0.9"})", claims)->fits(7));
  const auto excluded = needs_of(block + R"(, "exclude": ["10.0.0.0-10.0.0.63"])", claims);
  EXPECT_FALSE(excluded->fits(0)) << "no pod of this node would get an address";
  EXPECT_TRUE(excluded->fits(1));
}

// The node as read, with one rail that has `rail`'s keys, too.
NodeSnapshot NodeThatClaims(testing::TempRoot& scratch, const std::string& rail,
                            const std::string& from = "kubernetes") {
  scratch.Write("/var/run/secrets/kubernetes.io/serviceaccount/token", "token");
  scratch.Write("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", "authority");
  const auto fabric =
      ParseFabric(R"({"version": 1, "rails": [{"name": "r", "pf": 0, "subnet": "10.0.0.0/24")" + rail +
                      R"(}], "addresses": {"index": {"from": ")" + from + R"("}}})",
                  "fabric.json");
  EXPECT_TRUE(fabric) << Describe(fabric.error());
  NodeSnapshot node;
  node.inventory = std::make_shared<const inventory::Inventory>();
  node.of_fabric = true;
  node.fabric_path = "/etc/railhead/fabric.json";
  if (fabric) node.fabric = std::make_shared<const Fabric>(*fabric);
  return node;
}

TEST(NodeIndexPageTest, HasASampleForEachProblem) {
  testing::TempRoot scratch;
  scratch.Write("/etc/railhead/node-name", "n1\n");
  scratch.Write("/proc/sys/kernel/random/boot_id", "boot\n");
  const std::string block = R"(, "nodeBlock": 26)";
  const auto problems = [&](bool claims) {
    Published<NodeSnapshot> node(claims ? NodeThatClaims(scratch, block) : NodeSnapshot{});
    Published<NodeIndices> claimed;
    Log log("error");
    IndexService service(scratch.root(), node, {"127.0.0.1", "1"}, &claimed, &log);
    EXPECT_TRUE(service.Follow(*node.Get()));
    MetricRegistry registry;
    service.Register(registry);
    const testing::MetricsText metrics = testing::ParseMetrics(registry.Page(ExpositionFormat::kText), false);
    std::map<std::string, double> found;
    for (const auto& sample : metrics.families.at("railhead_node_index_problem").samples)
      found[sample.labels.at("problem")] = sample.value;
    return found;
  };
  using Found = std::map<std::string, double>;
  EXPECT_EQ(problems(false), Found{});
  EXPECT_EQ(problems(true), (Found{{"no index", 1},
                                   {"not confirmed", 0},
                                   {"claim not readable", 0},
                                   {"not reclaimed", 0},
                                   {"many claims", 0}}));
  const auto clock = ReadNodeIndexClock(scratch.root());
  ASSERT_TRUE(clock) << Describe(clock.error());
  NodeIndex index{.node = "n1", .index = 2, .claimed = true, .boot = clock->boot};
  index.boottime_ms = clock->boottime_ms;
  index.wall = clock->wall - std::chrono::hours(5);
  index.fence = std::chrono::hours(12);
  index.unreadable = {"NodeIndex node-7: /uid: missing"};
  index.crowded = {"node b has claimed at least 9 indices"};
  index.reclaim_problem = "removing node-5: forbidden";
  ASSERT_TRUE(kNodeIndexFile.Write(scratch.root(), index));
  EXPECT_EQ(problems(true), (Found{{"no index", 0},
                                   {"not confirmed", 1},
                                   {"claim not readable", 1},
                                   {"not reclaimed", 1},
                                   {"many claims", 1}}));
}

TEST(IndexServiceFollowTest, FollowsTheFabric) {
  testing::TempRoot scratch;
  scratch.Write("/etc/railhead/node-name", "n1\n");
  Log log("error");
  Published<NodeIndices> claimed;
  const Published<NodeSnapshot> node;
  // Nobody answers there: the service would retry.
  IndexService service(scratch.root(), node, {"127.0.0.1", "1"}, &claimed, &log);
  const auto follow = [&](const std::string& rail, const std::string& from) {
    const auto followed = service.Follow(NodeThatClaims(scratch, rail, from));
    EXPECT_TRUE(followed) << Describe(followed.error());
  };
  const std::string block = R"(, "nodeBlock": 26)";
  follow("", "kubernetes");
  EXPECT_FALSE(service.claims()) << "nothing divides the rail's subnet";
  follow(block, "kubernetes");
  EXPECT_TRUE(service.claims()) << "without a restart of railheadd";
  follow(block + R"(, "mtu": 4200)", "kubernetes");
  EXPECT_EQ(service.begun(), 1) << "addresses.index is the same";
  follow(block, "nodes");
  EXPECT_FALSE(service.claims());
}

TEST(IndexServiceFollowTest, GoesOnWhileItsNodeChangesAndEnds) {
  testing::TempRoot scratch;
  scratch.Write("/etc/railhead/node-name", "n1\n");
  Log log("error");
  Published<NodeIndices> claimed;
  Published<NodeSnapshot> node;
  auto service =
      testing::RunService<IndexService>(scratch.root(), node, KubeService{"127.0.0.1", "1"}, &claimed, &log);
  node.Set(NodeThatClaims(scratch, R"(, "nodeBlock": 26)"));
  node.Set(NodeThatClaims(scratch, "", "nodes"));
  service.RequestStop();
  EXPECT_TRUE(service.AwaitEnd(std::chrono::seconds(30)));
}

}  // namespace
}  // namespace railhead::node_index

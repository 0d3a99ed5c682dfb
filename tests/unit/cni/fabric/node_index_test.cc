// This node's index: by fabric.json's `nodes`, else as railheadd has claimed it.
#include "cni/fabric/node_index.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const auto kThen = std::chrono::system_clock::from_time_t(1'800'000'000);

NodeIndex Claimed() {
  return {.node = "n1",
          .index = 3,
          .claimed = true,
          .boot = "boot",
          .boottime_ms = 5000,
          .wall = kThen,
          .fence = hours(12)};
}

std::string Why(const NodeIndex& index, const NodeIndexClock& now) {
  const auto valid = index.CheckValid("n1", now);
  if (valid) return "";
  EXPECT_EQ(valid.error().code, ErrorCode::kBusy) << Describe(valid.error());
  return valid.error().message;
}

TEST(NodeIndexTest, IsUsedUntilTheApiWasSilentForTooLong) {
  EXPECT_EQ(Why(Claimed(), {"boot", 5000, kThen}), "");
  EXPECT_EQ(Why(Claimed(), {"boot", 5000 + 3'600'000, kThen + hours(1)}), "");
  EXPECT_NE(Why(Claimed(), {"boot", 5000 + 43'200'000, kThen + hours(1)}).find("fenceSeconds"),
            std::string::npos);
  EXPECT_NE(Why(Claimed(), {"boot", 6000, kThen + hours(12)}).find("fenceSeconds"), std::string::npos)
      << "a paused machine's clock of the boot stands still";
  EXPECT_EQ(Why(Claimed(), {"boot", 6000, kThen - hours(9)}), "")
      << "a clock that was set back within a boot";
}

// The wall clock may have been 20 hours ahead when the API answered, and right since the boot: then the node
// was off for longer than reclaimSeconds, and another one has the index.
TEST(NodeIndexTest, IsUsedAfterARebootOnceTheApiHasAnswered) {
  for (const auto wall : {kThen - hours(1), kThen, kThen + hours(5), kThen + hours(12)})
    EXPECT_NE(Why(Claimed(), {"next", 10, wall}).find("since this node's boot"), std::string::npos);
  EXPECT_NE(Why(Claimed(), {"boot", 4999, kThen}).find("since this node's boot"), std::string::npos)
      << "a machine that was put back to a snapshot";
}

TEST(NodeIndexTest, NamesItsProblems) {
  using Kind = NodeIndexProblem::Kind;
  const auto kinds = [](const NodeIndex& index, const NodeIndexClock& now) {
    std::vector<Kind> found;
    for (const NodeIndexProblem& problem : index.Problems("n1", now)) {
      EXPECT_NE(problem.error.message, "");
      EXPECT_NE(problem.error.hint, "");
      found.push_back(problem.kind);
    }
    return found;
  };
  NodeIndex index = Claimed();
  EXPECT_TRUE(kinds(index, {"boot", 6000, kThen}).empty());
  EXPECT_EQ(kinds(index, {"boot", 5000 + 10'800'000, kThen + hours(3)}), std::vector{Kind::kUnconfirmed});
  EXPECT_EQ(kinds(index, {"next", 6000, kThen}), std::vector{Kind::kNoIndex});
  index.unreadable = {"NodeIndex node-7: /uid: missing", "NodeIndex node-9: /uid: missing"};
  index.crowded = {"node b has claimed at least 9 indices"};
  index.reclaim_problem = "removing node-5: forbidden";
  EXPECT_EQ(kinds(index, {"boot", 6000, kThen}),
            (std::vector{Kind::kUnreadable, Kind::kUnreadable, Kind::kCrowded, Kind::kReclaim}));
  EXPECT_EQ(kinds({}, {"boot", 6000, kThen}), std::vector{Kind::kNoIndex});
}

TEST(NodeIndexTest, IsOfOneNodeAndClaimed) {
  NodeIndex index = Claimed();
  index.claimed = false;
  EXPECT_NE(Why(index, {"boot", 5000, kThen}).find("has not claimed"), std::string::npos);
  index = Claimed();
  index.node = "another";
  EXPECT_NE(Why(index, {"boot", 5000, kThen}).find("has not claimed"), std::string::npos);
  EXPECT_NE(Why({}, {"boot", 5000, kThen}).find("has not claimed"), std::string::npos);
}

class IndexOfThisNodeTest : public ::testing::Test {
 protected:
  static Fabric Make(const std::string& from, const std::string& nodes) {
    auto fabric = ParseFabric(
        R"({"version": 1, "rails": [{"name": "r", "pf": 0, "subnet": "10.0.0.0/24", "nodeBlock": 26}],
        "addresses": {"index": {"from": ")" +
            from + "\"}}, \"nodes\": " + nodes + "}",
        "fabric.json");
    if (!fabric) ADD_FAILURE() << Describe(fabric.error());
    return *std::move(fabric);
  }
  void Keep() {
    scratch_.Write("/proc/sys/kernel/random/boot_id", "boot\n");
    const auto clock = ReadNodeIndexClock(scratch_.root());
    ASSERT_TRUE(clock) << Describe(clock.error());
    NodeIndex index = Claimed();
    index.boot = clock->boot;
    index.boottime_ms = clock->boottime_ms;
    index.wall = clock->wall - seconds(5);
    ASSERT_TRUE(kNodeIndexFile.Write(scratch_.root(), index));
  }
  Result<std::optional<int>> Index(const Fabric& fabric) {
    return IndexOfThisNode(scratch_.root(), fabric, "n1");
  }

  TempRoot scratch_;
};

TEST_F(IndexOfThisNodeTest, NodesComesFirst) {
  Keep();
  EXPECT_EQ(Index(Make("kubernetes", R"({"n1": 1})")).value(), 1);
  EXPECT_EQ(Index(Make("kubernetes", R"({"n2": 1})")).value(), std::nullopt);
  EXPECT_EQ(Index(Make("kubernetes", "{}")).value(), 3);
  EXPECT_EQ(Index(Make("nodes", "{}")).value(), std::nullopt);
}

TEST_F(IndexOfThisNodeTest, WithoutAClaimItIsTriedAgainLater) {
  EXPECT_EQ(Index(Make("kubernetes", "{}")).error().code, ErrorCode::kBusy);
  scratch_.Write("/var/lib/railhead/node-index.json", "{");
  EXPECT_NE(Index(Make("kubernetes", "{}")).error().message.find("node-index.json"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing

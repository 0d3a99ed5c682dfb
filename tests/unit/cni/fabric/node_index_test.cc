// This node's index: by fabric.json's `nodes`, else as railheadd has claimed it.
#include "cni/fabric/node_index.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

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

TEST(NodeIndexTest, OutlivesAReboot) {
  EXPECT_EQ(Why(Claimed(), {"next", 10, kThen + hours(11)}), "");
  EXPECT_NE(Why(Claimed(), {"next", 10, kThen + hours(12)}).find("fenceSeconds"), std::string::npos);
  EXPECT_NE(Why(Claimed(), {"next", 10, kThen - hours(1)}).find("clock is behind"), std::string::npos);
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
  static Fabric Make(const std::string& store, const std::string& nodes) {
    auto fabric = ParseFabric(
        R"({"version": 1, "rails": [{"name": "r", "pf": 0, "subnet": "10.0.0.0/24", "nodeBlock": 26}],
        "addresses": {"store": {"type": ")" +
            store + "\"}}, \"nodes\": " + nodes + "}",
        "fabric.json");
    if (!fabric) ADD_FAILURE() << Describe(fabric.error());
    return *std::move(fabric);
  }
  void Keep() {
    NodeIndex index = Claimed();
    index.wall = std::chrono::system_clock::now() - seconds(5);
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
  EXPECT_EQ(Index(Make("node", "{}")).value(), std::nullopt);
}

TEST_F(IndexOfThisNodeTest, WithoutAClaimItIsTriedAgainLater) {
  EXPECT_EQ(Index(Make("kubernetes", "{}")).error().code, ErrorCode::kBusy);
  scratch_.Write("/var/lib/railhead/node-index.json", "{");
  EXPECT_NE(Index(Make("kubernetes", "{}")).error().message.find("node-index.json"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing

// Blocks of subnets, and invalid records.
#include "ipam/lease/pool_layout.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ipam/lease/cluster_store.h"
#include "tests/support/ipam/support.h"

namespace railhead::ipam {
namespace {

using testing::MakePool;

PoolLayout Layout(const std::string& subnet, std::uint64_t size,
                  const std::vector<std::string>& ranges = {}) {
  return PoolLayout::Make(MakePool(subnet, ranges, 0).ranges, size).value();
}

TEST(PoolLayout, BlocksCoverTheSubnet) {
  const PoolLayout layout = Layout("10.7.0.0/24", 64);
  EXPECT_EQ(layout.Count(), 4U);
  EXPECT_EQ(layout.Block(3).ToString(), "10.7.0.192-10.7.0.255");
  EXPECT_EQ(layout.AddressesOf(0), 63U);
  EXPECT_EQ(layout.AddressesOf(1), 64U);
  EXPECT_EQ(layout.AddressesOf(4), 0U);
  EXPECT_EQ(RangeOfBlock("10.7.0.0/24", 3, 64), layout.Block(3));
}

TEST(PoolLayout, ASubnetBelowOneBlockIsOne) {
  const PoolLayout layout = Layout("10.7.0.0/28", 64);
  EXPECT_EQ(layout.Count(), 1U);
  EXPECT_EQ(layout.Block(0).ToString(), "10.7.0.0-10.7.0.15");
  EXPECT_EQ(layout.AddressesOf(0), 14U);
}

TEST(PoolLayout, BlocksWithoutAddressesArePassedOver) {
  const PoolLayout layout = Layout("10.7.0.0/24", 16, {"10.7.0.40-10.7.0.41", "10.7.0.200"});
  EXPECT_EQ(layout.NextFrom(0), 2U);
  EXPECT_EQ(layout.NextFrom(3), 12U);
  EXPECT_EQ(layout.NextFrom(13), std::nullopt);
}

TEST(PoolLayout, LargeSubnetsEndAtTheMostBlocks) {
  const PoolLayout layout = Layout("fd00::/48", 64);
  EXPECT_EQ(layout.Count(), PoolLayout::kMaxBlocks);
  EXPECT_EQ(layout.NextFrom(5), 5U);
  EXPECT_EQ(layout.NextFrom(PoolLayout::kMaxBlocks), std::nullopt);
  EXPECT_EQ(layout.Block(1).ToString(), "fd00::40-fd00::7f");
}

TEST(PoolLayout, NodesBeginFarApart) {
  const PoolLayout layout = Layout("10.0.0.0/12", 64);
  std::set<std::uint64_t> starts;
  for (int i = 0; i < 1000; ++i) starts.insert(layout.StartOf("node-" + std::to_string(i)));
  // By chance about 30 of 1000 share one of 16384.
  EXPECT_GT(starts.size(), 940U);
  EXPECT_EQ(layout.StartOf("node-0") % 4096, 466U) << "as in every release";
}

TEST(PoolLayout, ASizeThatIsNoPowerOfTwoIsRefused) {
  EXPECT_FALSE(PoolLayout::Make(MakePool("10.7.0.0/24", {}, 0).ranges, 48));
  EXPECT_FALSE(PoolLayout::Make(MakePool("10.7.0.0/24", {}, 0).ranges, 0));
}

TEST(ClusterRecords, ComeBackAsTheyWere) {
  const BlockRecord block{"n1", "i", "n", true};
  EXPECT_EQ(ParseBlockRecord({LeaseKey::Block("10.7.0.0/24", 1), Encode(block), "1"}).value(), block);
  NodeRecord node{
      .instance = "i", .previous = "p", .session = "s", .machine = "m", .boot = "b", .counter = 9};
  node.blocks["10.7.0.0/24"] = {1, 2};
  node.reclaimed_by = "n2";
  EXPECT_EQ(ParseNodeRecord({LeaseKey::Node("n1"), Encode(node), "1"}).value(), node);
  EXPECT_EQ(
      ParseLayout({LeaseKey::Block("10.7.0.0/24", kLayoutIndex), Encode(LayoutRecord{64}), "1"})->block_size,
      64U);
}

TEST(ClusterRecords, MalformedRecordsAreReportedByName) {
  for (const char* text :
       {"", "[]", "{}", R"({"node": "a", "instance": "i", "nonce": "n", "state": "mine"})"}) {
    const auto parsed = ParseBlockRecord({LeaseKey::Block("10.7.0.0/24", 7), text, "1"});
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kMalformed);
    EXPECT_NE(parsed.error().message.find("block 7 of 10.7.0.0/24"), std::string::npos)
        << parsed.error().message;
  }
  const auto node =
      ParseNodeRecord({LeaseKey::Node("n1"), R"({"instance":"i","session":"s","blocks":{"p":["x"]}})", "1"});
  ASSERT_FALSE(node);
  EXPECT_NE(node.error().message.find("n1"), std::string::npos);
  EXPECT_FALSE(ParseLayout({LeaseKey::Block("10.7.0.0/24", kLayoutIndex), R"({"blockSize": 0})", "1"}));
}

}  // namespace
}  // namespace railhead::ipam

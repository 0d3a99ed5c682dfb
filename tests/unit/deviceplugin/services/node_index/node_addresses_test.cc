#include "deviceplugin/services/node_index/node_addresses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "deviceplugin/services/node_index/index_store.h"
#include "ipam/store/range.h"
#include "tests/support/ipam/support.h"

namespace railhead::node_index {
namespace {

using testing::Ip;
using testing::Prefix;
using testing::Range;

Rail RailOf(const std::string& subnet, int node_block) {
  Rail rail;
  rail.name = "rail0";
  rail.subnet = Prefix(subnet);
  rail.node_block = node_block;
  return rail;
}

// How many addresses pods of the node with that index can get, asked as railhead-ipam does.
std::uint64_t AddressesOf(const Rail& rail, int index) {
  const auto own = rail.RangesOf("", index);
  const IpPrefix network = rail.NetworkOf(own.front().first);
  const auto ranges = ipam::RangeSet::Make({network, own, rail.ExcludedFrom(own), rail.GatewayOf(network)});
  return ranges ? ranges->Size() : 0;
}

TEST(Capacity, IsWhatTheIndicesHave) {
  std::mt19937_64 random(1);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  for (int i = 0; i < 300; ++i) {
    Rail rail = RailOf("10.1.0.0/24", static_cast<int>(24 + below(9)));
    const IpAddress base = rail.subnet->First();
    if (below(2) == 0) rail.gateway = Gateway{.address = base.Plus(1 + below(254))};
    if (*rail.node_block < 32 && below(3) == 0) std::swap(rail.node_block, rail.node_subnet);
    if (below(2) == 0) rail.gateway = Gateway::Parse(below(2) == 0 ? "first" : "last");
    if (rail.gateway && rail.node_subnet) rail.gateway->place = Gateway::Place::kLast;
    if (below(3) == 0) rail.probe_place = below(2) == 0 ? ProbePlace::kFirst : ProbePlace::kLast;
    for (std::uint64_t holes = below(4); holes > 0; --holes) {
      const std::uint64_t first = below(256);
      rail.exclude.push_back({base.Plus(first), base.Plus(std::min<std::uint64_t>(255, first + below(60)))});
    }
    if (!rail.probe_place && below(3) == 0) rail.probe_addresses.emplace("n1", base.Plus(1 + below(254)));
    RailCapacity wanted{.rail = "rail0", .blocks = std::uint64_t{1} << (*rail.PartLength() - 24)};
    for (std::uint64_t index = 0; index < wanted.blocks; ++index) {
      const std::uint64_t count = AddressesOf(rail, static_cast<int>(index));
      if (count == 0) continue;
      wanted.least = wanted.nodes == 0 ? count : std::min(wanted.least, count);
      wanted.most = std::max(wanted.most, count);
      ++wanted.nodes;
      Fabric fabric;
      fabric.rails = {rail};
      EXPECT_FALSE(WhyNoAddress(fabric, rail, "", static_cast<int>(index)));
    }
    EXPECT_EQ(CapacityOf(rail), wanted) << "parts of /" << *rail.PartLength() << ", case " << i;
  }
}

TEST(Capacity, OfLargeSubnets) {
  const auto v6 = CapacityOf(RailOf("fd00:1::/48", 112));
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->blocks, kLastIndex + 1) << "a node's index has no more";
  EXPECT_EQ(v6->nodes, kLastIndex + 1);
  EXPECT_EQ(v6->most, 65536U);
  const auto v4 = CapacityOf(RailOf("10.0.0.0/12", 28));
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->nodes, 65536U);
  EXPECT_EQ(v4->most, 16U);
}

TEST(Capacity, OfARailWithoutBlocks) {
  Rail rail = RailOf("10.1.0.0/24", 28);
  rail.node_block.reset();
  EXPECT_FALSE(CapacityOf(rail));
  rail.node_ranges["n1"] = {Range("10.1.0.1-10.1.0.9")};
  EXPECT_FALSE(CapacityOf(rail));
}

TEST(BlockLength, CarriesTheNodes) {
  for (const std::size_t nodes : {1U, 2U, 3U, 100U, 1250U}) {
    for (const int vfs : {1, 8, 64}) {
      for (int length = 8; length <= 30; ++length) {
        const IpPrefix subnet{Ip("10.0.0.0"), length};
        const auto block = BlockLength(subnet, nodes, vfs);
        if (!block) continue;
        ASSERT_GE(*block, length);
        EXPECT_GE(std::uint64_t{1} << (*block - length), nodes);
        EXPECT_GE(std::uint64_t{1} << (32 - *block), static_cast<std::uint64_t>(vfs));
      }
    }
  }
  EXPECT_FALSE(BlockLength(Prefix("10.1.0.0/24"), 100, 8)) << "2.5 addresses each";
}

}  // namespace
}  // namespace railhead::node_index

// Orders of hosts: what is promised of each, on random fabrics too.
#include "deviceplugin/leaves/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/ipam/rapidcheck.h"
#include "tests/leaves/support.h"

namespace railhead::testing {
namespace {

using Hosts = std::vector<RankedHost>;

std::vector<std::string> NamesOf(const Hosts& hosts) {
  std::vector<std::string> names;
  for (const RankedHost& host : hosts) names.push_back(host.name);
  return names;
}

// In a unit of a fabric of scalable units: leaf "UNIT-RAIL" on each rail.
RankedHost InUnit(const std::string& name, int unit, int rails = 2) {
  RankedHost host{name, {}};
  for (int rail = 0; rail < rails; ++rail)
    host.leaves["rail" + std::to_string(rail)] = std::to_string(unit) + "-" + std::to_string(rail);
  return host;
}

TEST(RanksTest, HostsOfAUnitComeTogether) {
  const Hosts given = {InUnit("a", 1), InUnit("b", 2), InUnit("c", 1), InUnit("d", 2), InUnit("e", 1)};
  EXPECT_EQ(CountCrossed(given), (CrossedEdges{{"rail0", 4}, {"rail1", 4}}));
  const Hosts ordered = OrderRanks(given);
  EXPECT_EQ(NamesOf(ordered), (std::vector<std::string>{"a", "c", "e", "b", "d"}));
  EXPECT_EQ(CountCrossed(ordered), (CrossedEdges{{"rail0", 2}, {"rail1", 2}}));
}

TEST(RanksTest, UnitsThatShareALeafAreBesideEachOther) {
  // Each host shares rail0's leaf with one, rail1's with another: a ring in which each edge crosses once.
  Hosts given;
  for (const auto& [name, leaf0, leaf1] :
       {std::tuple("a", "A", "1"), {"c", "B", "2"}, {"b", "A", "2"}, {"d", "B", "1"}})
    given.push_back({name, {{"rail0", leaf0}, {"rail1", leaf1}}});
  EXPECT_EQ(SumOf(CountCrossed(given)), 6U);
  EXPECT_EQ(SumOf(CountCrossed(OrderRanks(given))), 4U);
}

TEST(RanksTest, SmallRings) {
  EXPECT_EQ(OrderRanks({}), Hosts{});
  EXPECT_EQ(SumOf(CountCrossed({})), 0U);
  const Hosts one = {InUnit("a", 1)};
  EXPECT_EQ(OrderRanks(one), one);
  EXPECT_EQ(CountCrossed(one), (CrossedEdges{{"rail0", 0}, {"rail1", 0}}));
  const Hosts two = {InUnit("a", 1, 1), InUnit("b", 2, 1)};
  EXPECT_EQ(CountCrossed(two), (CrossedEdges{{"rail0", 2}})) << "there and back";
}

TEST(RanksTest, WhatIsNotKnownCrosses) {
  const Hosts hosts = {{"a", {{"rail0", "x"}}}, {"b", {}}, {"c", {{"rail0", "x"}}}};
  EXPECT_EQ(CountCrossed(hosts), (CrossedEdges{{"rail0", 2}}));
  EXPECT_EQ(NamesOf(OrderRanks({{"b", {}}, {"a", {{"rail0", "x"}}}, {"d", {}}, {"c", {{"rail0", "x"}}}})),
            (std::vector<std::string>{"b", "d", "a", "c"}));
}

TEST(RanksTest, LeavesOfAReport) {
  const LeafReport report{"gpu-001", Wall(0), {RailOn("rail0", "leaf0", {"leaf7"}), RailOn("rail1", "")}};
  EXPECT_EQ(RankedHostOf(report), (RankedHost{"gpu-001", {{"rail0", "leaf0"}}}))
      << "where it hangs, right or not";
}

Hosts AnyHosts(int most, int leaves, int rails) {
  Hosts hosts;
  const int count = *rc::gen::inRange(0, most + 1);
  for (int i = 0; i < count; ++i) {
    RankedHost host{"h" + std::to_string(i), {}};
    for (int rail = 0; rail < rails; ++rail) {
      const int leaf = *rc::gen::inRange(0, leaves + 1);
      if (leaf != 0) host.leaves["rail" + std::to_string(rail)] = std::to_string(leaf);
    }
    hosts.push_back(std::move(host));
  }
  return hosts;
}

TEST(RanksTest, AnOrderIsNeverWorseAndLosesNobody) {
  ExpectProperty([] {
    const Hosts given = AnyHosts(40, *rc::gen::inRange(1, 6), *rc::gen::inRange(1, 5));
    const Hosts ordered = OrderRanks(given);
    RC_ASSERT(SumOf(CountCrossed(ordered)) <= SumOf(CountCrossed(given)));
    RC_ASSERT(OrderRanks(given) == ordered);
    if (!given.empty()) RC_ASSERT(ordered.front() == given.front());
    auto before = NamesOf(given);
    auto after = NamesOf(ordered);
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    RC_ASSERT(before == after);
    for (const auto& [rail, crossed] : CountCrossed(ordered)) RC_ASSERT(crossed <= RingEdges(ordered.size()));
  });
}

TEST(RanksTest, InUnitsItIsTheBest) {
  ExpectProperty([] {
    const int rails = *rc::gen::inRange(1, 9);
    const int count = *rc::gen::inRange(2, 60);
    Hosts given;
    std::set<int> units;
    for (int i = 0; i < count; ++i) {
      const int unit = *rc::gen::inRange(0, 8);
      units.insert(unit);
      given.push_back(InUnit("h" + std::to_string(i), unit, rails));
    }
    const std::size_t best = units.size() < 2 ? 0 : units.size() * static_cast<std::size_t>(rails);
    RC_ASSERT(SumOf(CountCrossed(OrderRanks(given))) == best);
  });
}

// Against all orders of a few hosts: close where it is not the best.
TEST(RanksTest, OnSmallFabricsItIsNearTheBest) {
  int best_found = 0;
  int tried = 0;
  ExpectProperty([&] {
    Hosts hosts = AnyHosts(6, 2, 2);
    const std::size_t found = SumOf(CountCrossed(OrderRanks(hosts)));
    const auto by_name = [](const RankedHost& a, const RankedHost& b) { return a.name < b.name; };
    std::sort(hosts.begin(), hosts.end(), by_name);
    std::size_t best = SumOf(CountCrossed(hosts));
    do best = std::min(best, SumOf(CountCrossed(hosts)));
    while (std::next_permutation(hosts.begin(), hosts.end(), by_name));
    RC_ASSERT(found >= best && found <= best + 2);
    ++tried;
    best_found += found == best ? 1 : 0;
  });
  EXPECT_GE(best_found * 10, tried * 9) << best_found << " of " << tried;
}

}  // namespace
}  // namespace railhead::testing

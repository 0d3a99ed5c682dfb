#include "ipam/store/range.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ipam/store/runs.h"
#include "tests/support/ipam/support.h"
#include "tests/support/seed.h"

namespace railhead::ipam {
namespace {

using testing::Ip;
using testing::MakePool;
using testing::Prefix;
using testing::Range;

RangeSpec Spec(const std::string& subnet, const std::vector<std::string>& ranges = {},
               const std::vector<std::string>& exclusions = {}, const std::string& gateway = {}) {
  RangeSpec spec;
  spec.subnet = Prefix(subnet);
  for (const auto& text : ranges) spec.ranges.push_back(Range(text));
  for (const auto& text : exclusions) spec.exclusions.push_back(Range(text));
  if (!gateway.empty()) spec.gateway = Ip(gateway);
  return spec;
}

std::string Shown(const RangeSpec& spec) {
  const auto set = RangeSet::Make(spec);
  return set ? set->ToString() : "error: " + set.error().message;
}

TEST(RangeSet, LeavesOutNetworkBroadcastAndGateway) {
  EXPECT_EQ(Shown(Spec("10.0.0.0/29")), "10.0.0.1-10.0.0.6");
  EXPECT_EQ(Shown(Spec("10.0.0.5/29")), "10.0.0.1-10.0.0.6");
  EXPECT_EQ(Shown(Spec("10.0.0.0/29", {}, {}, "10.0.0.1")), "10.0.0.2-10.0.0.6");
  EXPECT_EQ(Shown(Spec("10.0.0.0/29", {}, {}, "10.0.0.3")), "10.0.0.1-10.0.0.2, 10.0.0.4-10.0.0.6");
  EXPECT_EQ(Shown(Spec("10.0.0.0/24", {"10.0.0.250-10.0.0.255"})), "10.0.0.250-10.0.0.254");
}

TEST(RangeSet, SmallSubnetsHaveNothingReserved) {
  EXPECT_EQ(Shown(Spec("10.0.0.0/31")), "10.0.0.0-10.0.0.1");
  EXPECT_EQ(Shown(Spec("10.0.0.0/31", {}, {}, "10.0.0.0")), "10.0.0.1");
  EXPECT_EQ(Shown(Spec("10.0.0.7/32")), "10.0.0.7");
  EXPECT_EQ(Shown(Spec("fd00::/127")), "fd00::-fd00::1");
  EXPECT_EQ(Shown(Spec("fd00::7/128")), "fd00::7");
}

TEST(RangeSet, Ipv6HasAnAnycastAddressButNoBroadcast) {
  EXPECT_EQ(Shown(Spec("fd00::/126")), "fd00::1-fd00::3");
  EXPECT_EQ(Shown(Spec("fd00::/120", {}, {"fd00::10-fd00::1f"}, "fd00::1")),
            "fd00::2-fd00::f, fd00::20-fd00::ff");
}

TEST(RangeSet, ExclusionsMayReachOutAndOverlap) {
  EXPECT_EQ(Shown(Spec("10.0.0.0/28", {"10.0.0.4-10.0.0.12"},
                       {"10.0.0.1-10.0.0.5", "10.0.0.5-10.0.0.6", "10.0.0.9"})),
            "10.0.0.7-10.0.0.8, 10.0.0.10-10.0.0.12");
  EXPECT_EQ(Shown(Spec("10.0.0.0/28", {}, {"192.168.0.0/16"})), "10.0.0.1-10.0.0.14");
  EXPECT_EQ(Shown(Spec("0.0.0.0/30", {}, {"0.0.0.0-0.0.0.1"})), "0.0.0.2");
  EXPECT_EQ(Shown(Spec("255.255.255.252/30", {}, {"255.255.255.254-255.255.255.255"})), "255.255.255.253");
}

TEST(RangeSet, JoinsRangesAndSortsThem) {
  EXPECT_EQ(Shown(Spec("10.0.0.0/24", {"10.0.0.20-10.0.0.30", "10.0.0.5-10.0.0.9", "10.0.0.10-10.0.0.12",
                                       "10.0.0.25-10.0.0.40"})),
            "10.0.0.5-10.0.0.12, 10.0.0.20-10.0.0.40");
}

TEST(RangeSet, NamesWhatIsWrong) {
  EXPECT_EQ(Shown(Spec("10.0.0.0/24", {}, {}, "10.0.1.1")),
            "error: gateway 10.0.1.1 is not in subnet 10.0.0.0/24");
  EXPECT_EQ(Shown(Spec("10.0.0.0/24", {}, {}, "fd00::1")),
            "error: gateway fd00::1 is not in subnet 10.0.0.0/24");
  EXPECT_EQ(Shown(Spec("10.0.0.0/24", {}, {}, "10.0.0.255")),
            "error: gateway 10.0.0.255 is the network or broadcast address of 10.0.0.0/24");
  EXPECT_EQ(Shown(Spec("10.0.0.0/24", {"10.0.0.250-10.0.1.5"})),
            "error: range 10.0.0.250-10.0.1.5 is not in subnet 10.0.0.0/24");
  EXPECT_EQ(Shown(Spec("10.0.0.0/24", {}, {"fd00::1"})),
            "error: exclude fd00::1 is of another address family than subnet 10.0.0.0/24");
  EXPECT_EQ(Shown(Spec("10.0.0.0/30", {}, {"10.0.0.2"}, "10.0.0.1")),
            "error: subnet 10.0.0.0/30 has no address left to hand out after the gateway, 1 exclusions and "
            "reserved "
            "addresses");
}

TEST(RangeSet, IndexAndAddressAreInverse) {
  const auto set =
      RangeSet::Make(Spec("10.0.0.0/27", {"10.0.0.2-10.0.0.9", "10.0.0.20-10.0.0.31"}, {"10.0.0.5"}));
  ASSERT_TRUE(set);
  std::set<IpAddress> seen;
  for (std::uint64_t i = 0; i < set->Size(); ++i) {
    const auto address = set->At(i);
    ASSERT_TRUE(address);
    EXPECT_TRUE(set->Contains(*address));
    EXPECT_TRUE(seen.empty() || *seen.rbegin() < *address);
    EXPECT_EQ(set->IndexOf(*address), i);
    seen.insert(*address);
  }
  EXPECT_EQ(seen.size(), 18U);
  EXPECT_EQ(set->At(set->Size()), std::nullopt);
  for (const char* outside : {"10.0.0.1", "10.0.0.5", "10.0.0.10", "10.0.0.31", "10.0.1.2", "fd00::1"}) {
    EXPECT_FALSE(set->Contains(Ip(outside))) << outside;
    EXPECT_EQ(set->IndexOf(Ip(outside)), std::nullopt) << outside;
  }
}

TEST(RangeSet, SizeOfHugeSubnetsSaturates) {
  const auto whole = RangeSet::Make(Spec("fd00::/48"));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->Size(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(whole->At(0), Ip("fd00::1"));
  EXPECT_EQ(whole->IndexOf(Ip("fd00::1")), 0U);
  const auto slash64 = RangeSet::Make(Spec("fd00::/64"));
  ASSERT_TRUE(slash64);
  EXPECT_EQ(slash64->Size(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(slash64->IndexOf(Ip("fd00::ffff:ffff:ffff:ffff")), std::numeric_limits<std::uint64_t>::max() - 1);
}

class MapRuns : public RunMap {
 public:
  Result<std::optional<IpRange>> AtOrBefore(const IpAddress& address) override {
    ++look_ups;
    const auto above = runs.upper_bound(address);
    if (above == runs.begin()) return std::nullopt;
    return IpRange{std::prev(above)->first, std::prev(above)->second};
  }
  Result<void> Put(const IpRange& run) override {
    runs[run.first] = run.last;
    return {};
  }
  Result<void> Erase(const IpAddress& first) override {
    runs.erase(first);
    return {};
  }

  std::map<IpAddress, IpAddress> runs;
  int look_ups = 0;
};

std::string Next(const RangeSet& ranges, MapRuns& runs, const std::optional<IpAddress>& last) {
  const auto next = NextFree(ranges, runs, last);
  if (!next) return "error: " + next.error().message;
  return *next ? (*next)->ToString() : "none";
}

TEST(Policy, GoesOnAfterTheLastAndWraps) {
  const RangeSet ranges = MakePool("10.0.0.0/29", {}, 0).ranges;  // .1 to .6
  MapRuns runs;
  EXPECT_EQ(Next(ranges, runs, std::nullopt), "10.0.0.1");
  EXPECT_EQ(Next(ranges, runs, Ip("10.0.0.1")), "10.0.0.2");
  EXPECT_EQ(Next(ranges, runs, Ip("10.0.0.6")), "10.0.0.1");
  ASSERT_TRUE(Take(runs, Ip("10.0.0.1")));
  ASSERT_TRUE(Take(runs, Ip("10.0.0.2")));
  EXPECT_EQ(Next(ranges, runs, Ip("10.0.0.6")), "10.0.0.3");
  // Lower ones are free again, and still it goes on upwards.
  ASSERT_TRUE(Free(runs, Ip("10.0.0.1")));
  EXPECT_EQ(Next(ranges, runs, Ip("10.0.0.3")), "10.0.0.4");
}

TEST(Policy, TheLastAllocatedItselfIsTheLastChoice) {
  const RangeSet ranges = MakePool("10.0.0.0/29", {}, 0).ranges;
  MapRuns runs;
  for (const char* taken : {"10.0.0.1", "10.0.0.2", "10.0.0.4", "10.0.0.5", "10.0.0.6"}) {
    ASSERT_TRUE(Take(runs, Ip(taken)));
  }
  EXPECT_EQ(Next(ranges, runs, Ip("10.0.0.3")), "10.0.0.3");
  ASSERT_TRUE(Take(runs, Ip("10.0.0.3")));
  EXPECT_EQ(Next(ranges, runs, Ip("10.0.0.3")), "none");
}

TEST(Policy, JumpsOverGapsAndExclusions) {
  const RangeSet ranges =
      MakePool("10.0.0.0/24", {"10.0.0.10-10.0.0.12", "10.0.0.50-10.0.0.52"}, 0, {"10.0.0.51"}).ranges;
  MapRuns runs;
  EXPECT_EQ(Next(ranges, runs, Ip("10.0.0.12")), "10.0.0.50");
  EXPECT_EQ(Next(ranges, runs, Ip("10.0.0.50")), "10.0.0.52");
  EXPECT_EQ(Next(ranges, runs, Ip("10.0.0.52")), "10.0.0.10");
  EXPECT_EQ(Next(ranges, runs, Ip("10.0.0.30")), "10.0.0.50");
  EXPECT_EQ(Next(ranges, runs, Ip("10.0.0.200")), "10.0.0.10");
}

TEST(Policy, TheEndsOfTheAddressSpace) {
  const RangeSet ranges = MakePool("255.255.255.254/31", {}, 0).ranges;
  MapRuns runs;
  ASSERT_TRUE(Take(runs, Ip("255.255.255.255")));
  EXPECT_EQ(Next(ranges, runs, Ip("255.255.255.255")), "255.255.255.254");
  ASSERT_TRUE(Take(runs, Ip("255.255.255.254")));
  EXPECT_EQ(Next(ranges, runs, Ip("255.255.255.255")), "none");
  ASSERT_TRUE(Free(runs, Ip("255.255.255.255")));
  EXPECT_EQ(Next(ranges, runs, Ip("255.255.255.254")), "255.255.255.255");

  const RangeSet lowest = MakePool("0.0.0.0/31", {}, 0).ranges;
  MapRuns low;
  ASSERT_TRUE(Take(low, Ip("0.0.0.0")));
  EXPECT_EQ(Next(lowest, low, Ip("0.0.0.1")), "0.0.0.1");
  ASSERT_TRUE(Free(low, Ip("0.0.0.0")));
  EXPECT_TRUE(low.runs.empty());
}

TEST(Policy, TakenTwiceOrFreedTwiceIsAnError) {
  MapRuns runs;
  EXPECT_FALSE(Free(runs, Ip("10.0.0.1")));
  ASSERT_TRUE(Take(runs, Ip("10.0.0.1")));
  EXPECT_FALSE(Take(runs, Ip("10.0.0.1")));
  EXPECT_EQ(runs.runs.size(), 1U);
}

TEST(Policy, CostDoesNotGrowWithFill) {
  const RangeSet ranges = MakePool("10.0.0.0/12", {}, 0).ranges;
  MapRuns runs;
  runs.runs[Ip("10.0.0.1")] = Ip("10.15.255.253");  // all but one of a million
  const auto next = NextFree(ranges, runs, Ip("10.0.0.5"));
  ASSERT_TRUE(next);
  EXPECT_EQ(*next, Ip("10.15.255.254"));
  EXPECT_EQ(runs.look_ups, 1);
}

// The same by walking over all addresses.
std::optional<IpAddress> NextByWalking(const RangeSet& ranges, const std::set<IpAddress>& taken,
                                       const std::optional<IpAddress>& last) {
  std::vector<IpAddress> order;
  for (std::uint64_t i = 0; i < ranges.Size(); ++i) order.push_back(*ranges.At(i));
  std::vector<IpAddress> wrapped;
  for (const auto& address : order) {
    if (last && address > *last) wrapped.push_back(address);
  }
  wrapped.insert(wrapped.end(), order.begin(), order.end());
  for (const auto& address : wrapped) {
    if (!taken.contains(address)) return address;
  }
  return std::nullopt;
}

void CompareWithWalking(std::mt19937_64& random, const AddressPool& pool) {
  MapRuns runs;
  std::set<IpAddress> taken;
  const IpAddress base = pool.ranges.subnet().First();
  const std::uint64_t size = *pool.ranges.subnet().Last().Minus(base) + 1;
  for (int step = 0; step < 3000; ++step) {
    const IpAddress address = base.Plus(random() % size);
    // Phases of filling and of emptying.
    const bool fill = (step / 500) % 2 == 0;
    if (taken.contains(address)) {
      if (fill && random() % 4 != 0) continue;
      ASSERT_TRUE(Free(runs, address));
      taken.erase(address);
    } else {
      ASSERT_TRUE(Take(runs, address));
      taken.insert(address);
    }
    const auto last = random() % 10 == 0 ? std::nullopt : std::optional(base.Plus(random() % size));
    const auto next = NextFree(pool.ranges, runs, last);
    ASSERT_TRUE(next);
    ASSERT_EQ(*next, NextByWalking(pool.ranges, taken, last)) << "step " << step;
  }
  std::set<IpAddress> in_runs;
  for (const auto& [first, end] : runs.runs) {
    for (IpAddress at = first; at != end; at = at.Plus(1)) in_runs.insert(at);
    in_runs.insert(end);
  }
  EXPECT_EQ(in_runs, taken);
}

TEST(Policy, AgreesWithWalkingOverAllAddresses) {
  std::mt19937_64 random(testing::Seed());
  CompareWithWalking(random, MakePool("10.0.0.0/26", {}, 0));
  CompareWithWalking(random, MakePool("10.0.0.0/26", {"10.0.0.3-10.0.0.20", "10.0.0.30-10.0.0.60"}, 0,
                                      {"10.0.0.10-10.0.0.12", "10.0.0.40", "10.0.0.60"}));
  CompareWithWalking(random, MakePool("255.255.255.192/26", {"255.255.255.200-255.255.255.255"}, 0));
  CompareWithWalking(random, MakePool("0.0.0.0/27", {}, 0));
  CompareWithWalking(random, MakePool("fd00::/122", {}, 0, {"fd00::8-fd00::f"}));
}

}  // namespace
}  // namespace railhead::ipam

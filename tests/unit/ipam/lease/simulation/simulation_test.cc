// No address at two nodes, whatever happens; and the checker that says so finds what it is to find.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/ipam/support.h"
#include "tests/unit/ipam/lease/simulation/checker.h"
#include "tests/unit/ipam/lease/simulation/world.h"

namespace railhead::testing {
namespace {

using Kind = HistoryEvent::Kind;

constexpr std::uint64_t kHour = 3'600'000;

// RAILHEAD_TEST_HOURS: of simulated time, for a longer search.
std::uint64_t Hours(std::uint64_t usual) {
  const char* given = std::getenv("RAILHEAD_TEST_HOURS");
  return kHour * (given != nullptr ? std::strtoull(given, nullptr, 10) : usual);
}

void PrintCounts(const World& world) {
  for (const auto& [what, count] : world.counts()) std::printf("  %-28s %d\n", what.c_str(), count);
}

void ExpectSound(const World& world) {
  const auto findings = CheckHistory(world.history(), world.rest_ms());
  EXPECT_EQ(findings.size(), 0U);
  for (std::size_t i = 0; i < findings.size() && i < 10; ++i) ADD_FAILURE() << findings[i];
}

void ExpectHappened(const World& world, const std::vector<std::string>& all) {
  for (const std::string& what : all) EXPECT_TRUE(world.counts().contains(what)) << what;
}

TEST(Simulation, NoAddressAtTwoNodes) {
  World world({.nodes = 5, .seed = Seed()});
  world.Run(Hours(12));
  PrintCounts(world);
  ExpectSound(world);
  ExpectHappened(
      world, {"address given", "block claimed", "block usable", "block returned", "reboot", "cut off",
              "daemon killed", "killed within a step", "request or answer lost", "cluster store put back"});
}

// Longer than reclaimSeconds: others may get what the silent node's pods have, but nothing else.
TEST(Simulation, NodesThatAreAwayForLong) {
  World world({.nodes = 4, .seed = Seed(), .longest_cut_ms = 5 * kHour, .restores = false, .kills = 0.1});
  world.Run(Hours(36));
  PrintCounts(world);
  ExpectSound(world);
  ExpectHappened(world, {"dead node reclaimed", "silent for reclaimSeconds"});
}

// Virtual machines that are paused, some for longer than reclaimSeconds: they know of no time that has
// passed, and pods ask for addresses as soon as they go on.
TEST(Simulation, MachinesThatStandStill) {
  // So many nodes that the blocks of one that stands still are wanted.
  World world({.nodes = 9, .seed = Seed(), .restores = false, .kills = 0.1, .longest_pause_ms = 4 * kHour});
  world.Run(Hours(5));
  PrintCounts(world);
  ExpectSound(world);
  ExpectHappened(world,
                 {"paused", "machine stood still", "dead node reclaimed", "silent for reclaimSeconds"});
}

TEST(Simulation, TheSameSeedGivesTheSameHistory) {
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 2; ++i) {
    World world({.nodes = 3, .seed = 42});
    world.Run(kHour);
    sizes.push_back(world.history().size());
  }
  EXPECT_GT(sizes.front(), 0U);
  EXPECT_EQ(sizes.front(), sizes.back());
}

// A cluster store that lets two nodes claim one block.
TEST(Simulation, TheCheckerFindsWhatABrokenClusterStoreDoes) {
  World world({.nodes = 4, .seed = 7, .two_creators = true});
  world.Run(3 * kHour);
  EXPECT_FALSE(CheckHistory(world.history(), world.rest_ms()).empty());
}

TEST(Checker, FindsAPlantedDouble) {
  std::vector<HistoryEvent> history = {{1000, Kind::kHold, "a", "10.0.0.1"},
                                       {2000, Kind::kHold, "b", "10.0.0.2"},
                                       {3000, Kind::kRelease, "a", "10.0.0.1"}};
  EXPECT_TRUE(CheckHistory(history, 100).empty());
  history.push_back({4000, Kind::kHold, "a", "10.0.0.2"});
  EXPECT_EQ(CheckHistory(history, 100).size(), 1U);
}

TEST(Checker, FindsAnAddressThatComesTooEarly) {
  std::vector<HistoryEvent> history = {{1000, Kind::kHold, "a", "10.0.0.1"},
                                       {2000, Kind::kRelease, "a", "10.0.0.1"},
                                       {90'000, Kind::kHold, "b", "10.0.0.1"}};
  EXPECT_EQ(CheckHistory(history, 100'000).size(), 1U);
  EXPECT_TRUE(CheckHistory(history, 80'000).empty());
}

TEST(Checker, ExcusesOnlyWhatTheSilentNodeHeld) {
  const std::vector<HistoryEvent> history = {{1000, Kind::kHold, "a", "10.0.0.1"},
                                             {2000, Kind::kExcuse, "a", ""},
                                             {3000, Kind::kHold, "a", "10.0.0.2"},
                                             {4000, Kind::kHold, "b", "10.0.0.1"},
                                             {5000, Kind::kHold, "b", "10.0.0.2"}};
  const auto findings = CheckHistory(history, 100);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings.front().find("10.0.0.2"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing

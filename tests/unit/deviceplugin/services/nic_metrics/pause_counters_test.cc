// Drivers' names of pause counters.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "deviceplugin/services/nic_metrics/collector.h"

namespace railhead::testing {
namespace {

TEST(PauseCountersTest, OfEveryKnownDriverNamesAreDistinctAndHavePriorities) {
  for (const char* driver : {"mlx5_core", "bnxt_en", "ice", "i40e", "ixgbe"}) {
    const auto& names = nic_metrics::PriorityCounterNames(driver);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << driver;
    std::map<std::string, std::uint64_t> statistics;
    for (const std::string& name : names) statistics[name] = 1;
    const auto counts = nic_metrics::PriorityCountsOf(driver, statistics);
    EXPECT_EQ(counts.size(), names.size()) << driver;
    std::set<int> paused;
    for (const nic_metrics::PriorityCount& count : counts) {
      if (count.counter == nic_metrics::PriorityCounter::kPauseFrames && !count.transmit && count.priority)
        paused.insert(*count.priority);
    }
    EXPECT_EQ(paused.size(), 8U) << driver;
  }
}

TEST(PauseCountersTest, WhatMlx5Says) {
  const auto counts = nic_metrics::PriorityCountsOf("mlx5_core", {{"rx_prio3_pause", 7},
                                                                  {"tx_prio5_pause_duration", 1'500'000},
                                                                  {"rx_prio0_discards", 2},
                                                                  {"tx_global_pause", 4},
                                                                  {"rx_out_of_buffer", 9}});
  const auto has = [&](const nic_metrics::PriorityCount& wanted) {
    return std::find(counts.begin(), counts.end(), wanted) != counts.end();
  };
  EXPECT_EQ(counts.size(), 4U);
  EXPECT_TRUE(has({nic_metrics::PriorityCounter::kPauseFrames, false, 3, 7}));
  EXPECT_TRUE(has({nic_metrics::PriorityCounter::kPauseMicroseconds, true, 5, 1'500'000}));
  EXPECT_TRUE(has({nic_metrics::PriorityCounter::kDiscards, false, 0, 2}));
  EXPECT_TRUE(has({nic_metrics::PriorityCounter::kPauseFrames, true, std::nullopt, 4}));
}

TEST(PauseCountersTest, OfAnotherDriverNothing) {
  EXPECT_TRUE(nic_metrics::PriorityCounterNames("veth").empty());
  EXPECT_TRUE(nic_metrics::PriorityCountsOf("veth", {{"rx_prio3_pause", 7}}).empty());
}

}  // namespace
}  // namespace railhead::testing

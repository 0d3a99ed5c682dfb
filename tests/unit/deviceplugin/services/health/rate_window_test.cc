#include <gtest/gtest.h>

#include <limits>

#include "deviceplugin/services/health/monitor.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

using std::chrono::seconds;

health::RateWindow::Time T(int second) {
  return At(second).steady;
}

TEST(RateWindowTest, WhatWasThereBeforeIsNoRise) {
  health::RateWindow window(seconds(60));
  window.Read(1000, T(0));
  EXPECT_EQ(window.Sum(T(0)), 0U);
  window.Read(1000, T(5));
  EXPECT_EQ(window.Sum(T(5)), 0U);
}

TEST(RateWindowTest, RisesLeaveTheWindow) {
  health::RateWindow window(seconds(60));
  window.Read(0, T(0));
  window.Read(3, T(10));
  window.Read(7, T(40));
  EXPECT_EQ(window.Sum(T(40)), 7U);
  EXPECT_EQ(window.Sum(T(69)), 7U);
  EXPECT_EQ(window.Sum(T(70)), 4U);
  EXPECT_EQ(window.Sum(T(100)), 0U);
}

TEST(RateWindowTest, ACounterThatBeginsAnewDidNotRise) {
  health::RateWindow window(seconds(60));
  window.Read(500, T(0));
  window.Read(2, T(5));
  EXPECT_EQ(window.Sum(T(5)), 0U);
  window.Read(5, T(10));
  EXPECT_EQ(window.Sum(T(10)), 3U);
}

TEST(RateWindowTest, SumsDoNotOverflow) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  health::RateWindow window(seconds(60));
  for (int second = 0; second < 40; second += 10) {
    window.Read(0, T(second));
    window.Read(kMost, T(second));
  }
  EXPECT_EQ(window.Sum(T(40)), kMost);
}

// Exact to a thirtieth of the window, however often is read.
TEST(RateWindowTest, ManyReadings) {
  health::RateWindow window(seconds(3600));
  for (int second = 0; second <= 7200; ++second) window.Read(static_cast<std::uint64_t>(second), T(second));
  const std::uint64_t sum = window.Sum(T(7200));
  EXPECT_LE(sum, 3600U);
  EXPECT_GE(sum, 3600U - 3600U / 30);
}

TEST(RateWindowTest, RisesOfAnEarlierProcess) {
  health::RateWindow window(seconds(60));
  window.Add(5, T(-50));
  EXPECT_EQ(window.Sum(T(0)), 5U);
  EXPECT_EQ(window.Sum(T(10)), 0U);
}

}  // namespace
}  // namespace railhead::testing

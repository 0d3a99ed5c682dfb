// What a new process makes of the state that an earlier one has left.
#include <gtest/gtest.h>

#include "deviceplugin/services/health/monitor.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

health::HealthReason Reason(health::HealthRule rule, const std::string& device, int since,
                            const std::string& counter = {}) {
  return {rule, device, counter, "what it was", At(since).wall};
}

health::DeviceHealth Saved(const health::HealthSubject& subject, std::vector<health::HealthReason> reasons) {
  const bool healthy = reasons.empty();
  return {subject.id, subject.is_vf, subject.pf_id,     subject.pf_name,
          healthy,    At(-100).wall, std::move(reasons)};
}

TEST(MonitorRestartTest, UnhealthyStaysUntilItIsKnownToBeGood) {
  health::HealthMonitor monitor(health::DefaultHealthRules());
  const auto reason = Reason(health::HealthRule::kLink, kPf, -100);
  monitor.Restore({Saved(Pf(), {reason}), Saved(Vf(), {reason})}, At(0));
  EXPECT_FALSE(monitor.Find(kPf)->healthy);
  EXPECT_FALSE(monitor.Find(kVf)->healthy);
  EXPECT_EQ(monitor.Find(kVf)->since, At(-100).wall);
  EXPECT_TRUE(monitor.Observe(Pf(), GoodPf(), At(1)).empty());
  EXPECT_TRUE(monitor.Observe(Vf(), GoodVf(), At(1)).empty());
  EXPECT_TRUE(monitor.Observe(Pf(), GoodPf(), At(60)).empty());
  const auto changes = monitor.Observe(Pf(), GoodPf(), At(61));
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_TRUE(changes[0].healthy && changes[1].healthy);
  EXPECT_EQ(changes[1].device, kVf);
  ASSERT_EQ(changes[0].ended.size(), 1U);
  EXPECT_EQ(changes[0].ended[0].since, At(-100).wall);
}

TEST(MonitorRestartTest, HealthyStaysUntilItIsKnownToBeBad) {
  health::HealthMonitor monitor(health::DefaultHealthRules());
  monitor.Restore({Saved(Pf(), {}), Saved(Vf(), {})}, At(0));
  EXPECT_TRUE(monitor.Observe(Pf(), NoCarrier(GoodPf()), At(1)).empty());
  EXPECT_TRUE(monitor.Observe(Vf(), GoodVf(), At(1)).empty());
  EXPECT_TRUE(monitor.Observe(Pf(), NoCarrier(GoodPf()), At(10)).empty());
  EXPECT_EQ(monitor.Observe(Pf(), NoCarrier(GoodPf()), At(11)).size(), 2U);
}

TEST(MonitorRestartTest, WhatIsStillBadIsNoChange) {
  health::HealthMonitor monitor(health::DefaultHealthRules());
  monitor.Restore({Saved(Pf(), {Reason(health::HealthRule::kLink, kPf, -100)})}, At(0));
  health::HealthRules link = Only(health::HealthRule::kLink);
  monitor.SetRules(link);
  for (int second = 1; second < 100; second += 5) {
    EXPECT_TRUE(monitor.Observe(Pf(), NoCarrier(GoodPf()), At(second)).empty());
  }
  EXPECT_EQ(monitor.Find(kPf)->reasons[0].since, At(-100).wall);
}

// The hour without errors that a port has to show does not end by a restart, nor does it
// begin anew.
TEST(MonitorRestartTest, AWindowGoesOn) {
  health::HealthMonitor monitor(health::DefaultHealthRules());
  monitor.Restore({Saved(Pf(), {Reason(health::HealthRule::kErrorRate, kPf, -3000, "symbol_error")})}, At(0));
  const auto see = [&](int second) {
    return monitor.Observe(Pf(), WithCounter(GoodPf(), health::HealthRule::kErrorRate, "symbol_error", 500),
                           At(second));
  };
  EXPECT_TRUE(see(1).empty());
  EXPECT_TRUE(see(590).empty());
  EXPECT_TRUE(see(610).empty()) << "good now, for up_after";
  EXPECT_TRUE(see(669).empty());
  EXPECT_EQ(see(670).size(), 1U);
}

TEST(MonitorRestartTest, AClockThatWasSetBackEndsNothingEarly) {
  health::HealthMonitor monitor(health::DefaultHealthRules());
  monitor.Restore(
      {Saved(Pf(), {Reason(health::HealthRule::kPauseStorm, kPf, 5000, "tx_pause_storm_error_events")})},
      At(0));
  EXPECT_TRUE(monitor.Observe(Pf(), GoodPf(), At(599)).empty());
  EXPECT_TRUE(monitor.Observe(Pf(), GoodPf(), At(600)).empty());
  EXPECT_EQ(monitor.Observe(Pf(), GoodPf(), At(660)).size(), 1U);
}

TEST(MonitorRestartTest, ARuleThatIsOffNowLetsGoAtOnce) {
  health::HealthMonitor monitor(Only(health::HealthRule::kGone));
  monitor.Restore({Saved(Pf(), {Reason(health::HealthRule::kLink, kPf, -100)})}, At(0));
  EXPECT_FALSE(monitor.Find(kPf)->healthy);
  const auto changes = monitor.Observe(Pf(), NoCarrier(GoodPf()), At(1));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_TRUE(changes[0].healthy);
}

// Reasons that could not be read (a later version's rules) hold nobody for ever.
TEST(MonitorRestartTest, UnhealthyWithoutReason) {
  health::HealthMonitor monitor(health::DefaultHealthRules());
  health::DeviceHealth saved = Saved(Pf(), {});
  saved.healthy = false;
  monitor.Restore({saved}, At(0));
  EXPECT_FALSE(monitor.Find(kPf)->healthy);
  const auto changes = monitor.Observe(Pf(), GoodPf(), At(1));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_TRUE(changes[0].flipped);
}

}  // namespace
}  // namespace railhead::testing

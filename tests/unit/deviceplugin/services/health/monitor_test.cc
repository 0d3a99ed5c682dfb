#include "deviceplugin/services/health/monitor.h"

#include <gtest/gtest.h>

#include "deviceplugin/services/health/judge.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

// A PF, one of its VFs, and the monitor that observes them.
class MonitorTest : public ::testing::Test {
 protected:
  void Use(health::HealthRules rules) { monitor_ = health::HealthMonitor(std::move(rules)); }

  std::vector<health::HealthChange> See(const health::HealthSubject& subject, const health::Observation& seen,
                                        int second) {
    return monitor_.Observe(subject, seen, At(second));
  }
  // The devices that became Healthy or Unhealthy.
  std::vector<std::string> Flips(const health::HealthSubject& subject, const health::Observation& seen,
                                 int second) {
    std::vector<std::string> flips;
    for (const health::HealthChange& change : See(subject, seen, second)) {
      if (change.flipped) flips.push_back((change.healthy ? "+" : "-") + change.device);
    }
    return flips;
  }
  bool IsHealthy(const std::string& id) { return monitor_.Find(id)->healthy; }

  health::HealthMonitor monitor_{health::HealthRules()};
};

// How a rule is made to fire, and the observation when nothing is wrong.
struct Case {
  health::HealthRule rule;
  health::HealthSubject subject;
  std::vector<health::Observation> before;  // observed once each, first
  health::Observation bad;
  health::Observation good;
};

health::Observation Unbound() {
  health::Observation seen;
  seen.bound = false;
  return seen;
}

health::Observation Gone() {
  health::Observation seen = Unbound();
  seen.present = false;
  return seen;
}

health::Observation InitPort() {
  health::Observation seen = GoodPf();
  seen.port->state = PortState::kInit;
  return seen;
}

health::Observation Failed() {
  health::Observation seen = GoodPf();
  seen.failed_reporters = {"fw_fatal"};
  return seen;
}

health::Observation Count(health::HealthRule rule, const std::string& name, std::uint64_t value) {
  return WithCounter(GoodPf(), rule, name, value);
}

std::vector<Case> Cases() {
  using R = health::HealthRule;
  const auto rising = [](R rule, const std::string& name, std::uint64_t to) {
    return Case{rule, Pf(), {Count(rule, name, 7)}, Count(rule, name, to), Count(rule, name, to)};
  };
  return {{R::kLink, Pf(), {}, NoCarrier(GoodPf()), GoodPf()},
          {R::kLink, Vf(), {}, NoCarrier(GoodVf()), GoodVf()},
          {R::kRdmaPort, Pf(), {}, InitPort(), GoodPf()},
          {R::kGone, Vf(), {}, Gone(), GoodVf()},
          {R::kUnbound, Vf(), {}, Unbound(), GoodVf()},
          rising(R::kAer, "aer_dev_fatal", 8),
          rising(R::kAer, "aer_dev_nonfatal", 18),
          {R::kDevlink, Pf(), {}, Failed(), GoodPf()},
          rising(R::kErrorRate, "symbol_error", 128),
          rising(R::kErrorRate, "link_error_recovery", 13),
          rising(R::kErrorRate, "link_downed", 10),
          rising(R::kErrorRate, "carrier_down_count", 10),
          rising(R::kErrorRate, "local_link_integrity_errors", 8),
          rising(R::kErrorRate, "excessive_buffer_overrun_errors", 8),
          rising(R::kPauseStorm, "tx_pause_storm_error_events", 8),
          rising(R::kPauseStorm, "tx_pause_storm_warning_events", 13)};
}

TEST_F(MonitorTest, EachRuleFiresAndRecovers) {
  for (const Case& one : Cases()) {
    const health::HealthRules rules = Only(one.rule);
    Use(rules);
    const health::RuleSettings& settings = rules.Of(one.rule);
    const std::string name = std::string(NameOf(one.rule)) + " of " + one.subject.id;
    int second = 0;
    for (const health::Observation& seen : one.before)
      EXPECT_TRUE(See(one.subject, seen, second++).empty()) << name;
    EXPECT_EQ(Flips(one.subject, one.bad, second).empty(), settings.down_after.count() > 0) << name;
    second += static_cast<int>(settings.down_after.count());
    (void)See(one.subject, one.bad, second);
    ASSERT_FALSE(IsHealthy(one.subject.id)) << name;
    ASSERT_EQ(monitor_.Find(one.subject.id)->reasons.size(), 1U) << name;
    EXPECT_EQ(monitor_.Find(one.subject.id)->reasons[0].rule, one.rule);
    // Good once the window has passed, Healthy up_after later.
    if (!settings.counters.empty()) second += 3600;
    EXPECT_TRUE(See(one.subject, one.good, ++second).empty()) << name;
    second += static_cast<int>(settings.up_after.count());
    EXPECT_TRUE(See(one.subject, one.good, second - 1).empty()) << name;
    EXPECT_EQ(Flips(one.subject, one.good, second), std::vector<std::string>{"+" + one.subject.id}) << name;
    EXPECT_TRUE(monitor_.IsSettled(one.subject.id)) << name;
  }
}

TEST_F(MonitorTest, ARuleThatIsOffSaysNothing) {
  for (const Case& one : Cases()) {
    health::HealthRules rules;
    for (health::RuleSettings& settings : rules.rules) settings.down_after = settings.up_after = {};
    for (const health::HealthRule rule : health::AllHealthRules()) rules.Of(rule).enabled = rule != one.rule;
    // The port also reports a missing carrier.
    if (one.rule == health::HealthRule::kLink) rules.Of(health::HealthRule::kRdmaPort).enabled = false;
    Use(rules);
    int second = 0;
    for (const health::Observation& seen : one.before) (void)See(one.subject, seen, second++);
    EXPECT_TRUE(See(one.subject, one.bad, second).empty()) << NameOf(one.rule);
    EXPECT_TRUE(IsHealthy(one.subject.id)) << NameOf(one.rule);
  }
}

TEST_F(MonitorTest, AShortFaultIsNone) {
  (void)See(Pf(), GoodPf(), 0);
  EXPECT_TRUE(See(Pf(), NoCarrier(GoodPf()), 5).empty());
  EXPECT_TRUE(See(Pf(), NoCarrier(GoodPf()), 14).empty());
  EXPECT_TRUE(See(Pf(), GoodPf(), 15).empty());
  EXPECT_TRUE(See(Pf(), NoCarrier(GoodPf()), 20).empty()) << "counted anew";
  EXPECT_TRUE(See(Pf(), NoCarrier(GoodPf()), 29).empty());
  EXPECT_EQ(Flips(Pf(), NoCarrier(GoodPf()), 30), std::vector<std::string>{std::string("-") + kPf});
}

TEST_F(MonitorTest, AFlappingLinkStaysUnhealthyUntilItIsQuiet) {
  (void)See(Pf(), NoCarrier(GoodPf()), 0);
  (void)See(Pf(), NoCarrier(GoodPf()), 10);
  ASSERT_FALSE(IsHealthy(kPf));
  for (int second = 20; second < 600; second += 20) {
    EXPECT_TRUE(See(Pf(), GoodPf(), second).empty());
    EXPECT_TRUE(See(Pf(), NoCarrier(GoodPf()), second + 10).empty());
  }
  EXPECT_TRUE(See(Pf(), GoodPf(), 600).empty());
  EXPECT_TRUE(See(Pf(), GoodPf(), 659).empty());
  EXPECT_EQ(Flips(Pf(), GoodPf(), 660), std::vector<std::string>{std::string("+") + kPf});
}

// Each loss is too short for the link rule, so the monitor also watches carrier_down_count.
TEST_F(MonitorTest, FlapsBetweenObservationsAreCounted) {
  const auto flapped = [](std::uint64_t times) {
    return Count(health::HealthRule::kErrorRate, "carrier_down_count", times);
  };
  EXPECT_TRUE(See(Pf(), flapped(1), 0).empty());
  EXPECT_TRUE(See(Pf(), flapped(3), 30).empty());
  EXPECT_EQ(Flips(Pf(), flapped(4), 60), std::vector<std::string>{std::string("-") + kPf});
}

TEST_F(MonitorTest, APfsTroubleReachesItsVfs) {
  health::HealthSubject unrelated = Vf("0000:83:02.0");
  unrelated.pf_id = "0000:83:00.0";
  (void)See(Pf(), NoCarrier(GoodPf()), 0);
  (void)See(Vf(), GoodVf(), 0);
  (void)See(Vf(kVf2, true), health::Observation{}, 0);
  (void)See(unrelated, GoodVf(), 0);
  EXPECT_EQ(
      Flips(Pf(), NoCarrier(GoodPf()), 10),
      (std::vector<std::string>{std::string("-") + kPf, std::string("-") + kVf, std::string("-") + kVf2}))
      << "one in a pod, too";
  EXPECT_TRUE(IsHealthy(unrelated.id));
  const health::HealthReason& reason = monitor_.Find(kVf)->reasons.at(0);
  EXPECT_EQ(reason.device, kPf);
  EXPECT_EQ(reason.text, "PF pf0 (0000:43:00.0) has no carrier");
  EXPECT_TRUE(monitor_.IsSettled(kVf)) << "the trouble is not its own";
  EXPECT_FALSE(monitor_.IsSettled(kPf));
  // A VF that was made after its PF became unhealthy.
  EXPECT_EQ(Flips(Vf("0000:43:02.2"), GoodVf(), 12), std::vector<std::string>{"-0000:43:02.2"});
  (void)See(Pf(), GoodPf(), 20);
  EXPECT_EQ(Flips(Pf(), GoodPf(), 80).size(), 4U);
  EXPECT_TRUE(IsHealthy(kVf));
}

TEST_F(MonitorTest, AVfsTroubleStaysItsOwn) {
  (void)See(Pf(), GoodPf(), 0);
  (void)See(Vf(kVf2), GoodVf(), 0);
  (void)See(Vf(), NoCarrier(GoodVf()), 0);
  EXPECT_EQ(Flips(Vf(), NoCarrier(GoodVf()), 10), std::vector<std::string>{std::string("-") + kVf});
  EXPECT_TRUE(IsHealthy(kPf));
  EXPECT_TRUE(IsHealthy(kVf2));
}

TEST_F(MonitorTest, VfCountIsTheVfsTrouble) {
  health::Observation none = GoodPf();
  none.vf_count = 0;
  (void)See(Pf(), none, 0);
  (void)See(Vf(), GoodVf(), 0);
  EXPECT_EQ(Flips(Pf(), none, 2), std::vector<std::string>{std::string("-") + kVf});
  EXPECT_TRUE(IsHealthy(kPf));
  EXPECT_EQ(monitor_.Find(kVf)->reasons.at(0).rule, health::HealthRule::kVfCount);
  EXPECT_EQ(Flips(Pf(), GoodPf(), 10), std::vector<std::string>{std::string("+") + kVf}) << "they are new";
}

// "A VF in a pod is in use, not unhealthy."
TEST_F(MonitorTest, InAPod) {
  (void)See(Vf(), GoodVf(), 0);
  // The host sees neither its network device nor anything wrong.
  for (int second = 5; second < 300; second += 5)
    EXPECT_TRUE(See(Vf(kVf, true), health::Observation{}, second).empty());
  // An earlier fault ends at once when the VF is in use.
  (void)See(Vf(), NoCarrier(GoodVf()), 300);
  (void)See(Vf(), NoCarrier(GoodVf()), 310);
  ASSERT_FALSE(IsHealthy(kVf));
  EXPECT_EQ(Flips(Vf(kVf, true), health::Observation{}, 311),
            std::vector<std::string>{std::string("+") + kVf});
  // The driver unbound while a pod has it.
  (void)See(Vf(kVf, true), Unbound(), 320);
  EXPECT_EQ(Flips(Vf(kVf, true), Unbound(), 325), std::vector<std::string>{std::string("-") + kVf});
  (void)See(Vf(kVf, true), Gone(), 330);
  (void)See(Vf(kVf, true), Gone(), 332);
  ASSERT_FALSE(IsHealthy(kVf));
  EXPECT_EQ(monitor_.Find(kVf)->reasons.size(), 2U) << "unbound cannot be judged while it is gone: it stands";
}

TEST_F(MonitorTest, WhatCannotBeJudgedStandsAndItsTimesBeginAnew) {
  (void)See(Pf(), NoCarrier(GoodPf()), 0);
  (void)See(Pf(), NoCarrier(GoodPf()), 10);
  (void)See(Pf(), GoodPf(), 20);  // good since 20
  (void)See(Pf(), Gone(), 30);
  (void)See(Pf(), Gone(), 500);
  ASSERT_EQ(monitor_.Find(kPf)->reasons.size(), 3U);
  (void)See(Pf(), GoodPf(), 501);
  (void)See(Pf(), GoodPf(), 520);
  EXPECT_EQ(monitor_.Find(kPf)->reasons.size(), 2U) << "gone is over, link and port are not";
  EXPECT_EQ(Flips(Pf(), GoodPf(), 560).size(), 0U);
  EXPECT_EQ(Flips(Pf(), GoodPf(), 561), std::vector<std::string>{std::string("+") + kPf});
}

TEST_F(MonitorTest, SeveralReasons) {
  Use(Only(health::HealthRule::kLink));
  health::HealthRules rules = Only(health::HealthRule::kLink);
  rules.Of(health::HealthRule::kDevlink).enabled = true;
  monitor_.SetRules(rules);
  health::Observation both = NoCarrier(GoodPf());
  both.failed_reporters = {"fw_fatal"};
  (void)See(Pf(), both, 0);
  auto changes = See(Pf(), both, 5);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_TRUE(changes[0].flipped);
  changes = See(Pf(), both, 10);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_FALSE(changes[0].flipped) << "one more reason is told, the state is the same";
  ASSERT_EQ(changes[0].started.size(), 1U);
  EXPECT_EQ(changes[0].started[0].rule, health::HealthRule::kLink);
  EXPECT_EQ(changes[0].reasons.size(), 2U);
  EXPECT_EQ(changes[0].reasons[0].rule, health::HealthRule::kLink) << "in the order of the rules";
  EXPECT_EQ(monitor_.Find(kPf)->since, At(5).wall);
  (void)See(Pf(), NoCarrier(GoodPf()), 20);
  changes = See(Pf(), NoCarrier(GoodPf()), 80);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_FALSE(changes[0].healthy);
  ASSERT_EQ(changes[0].ended.size(), 1U);
  EXPECT_EQ(changes[0].ended[0].rule, health::HealthRule::kDevlink);
}

TEST_F(MonitorTest, ACounterThatBeginsAnewIsNoRise) {
  using R = health::HealthRule;
  Use(Only(R::kAer));
  EXPECT_TRUE(See(Pf(), Count(R::kAer, "aer_dev_fatal", 40), 0).empty());
  EXPECT_TRUE(See(Pf(), Count(R::kAer, "aer_dev_fatal", 0), 30).empty()) << "the driver was bound anew";
  EXPECT_TRUE(See(Pf(), Count(R::kAer, "aer_dev_fatal", 0), 60).empty());
  EXPECT_EQ(Flips(Pf(), Count(R::kAer, "aer_dev_fatal", 1), 90),
            std::vector<std::string>{std::string("-") + kPf});
}

TEST_F(MonitorTest, SlowRisesAreNoTrouble) {
  using R = health::HealthRule;
  Use(Only(R::kErrorRate));
  // 100 an hour, below 120.
  for (int hour = 0; hour < 6; ++hour) {
    EXPECT_TRUE(See(Pf(),
                    Count(R::kErrorRate, "symbol_error", std::uint64_t{100} * static_cast<unsigned>(hour)),
                    hour * 3600)
                    .empty());
  }
}

TEST_F(MonitorTest, RulesChangeWhileRunning) {
  (void)See(Pf(), NoCarrier(GoodPf()), 0);
  (void)See(Pf(), NoCarrier(GoodPf()), 10);
  ASSERT_FALSE(IsHealthy(kPf));
  health::HealthRules off;
  off.Of(health::HealthRule::kLink).enabled = false;
  off.Of(health::HealthRule::kRdmaPort).enabled = false;
  monitor_.SetRules(off);
  EXPECT_FALSE(IsHealthy(kPf)) << "until it is observed";
  EXPECT_EQ(Flips(Pf(), NoCarrier(GoodPf()), 15), std::vector<std::string>{std::string("+") + kPf});
}

TEST_F(MonitorTest, ForgottenDevicesBeginAnew) {
  (void)See(Vf(), Gone(), 0);
  (void)See(Vf(), Gone(), 2);
  ASSERT_FALSE(IsHealthy(kVf));
  EXPECT_FALSE(monitor_.KeepOnly({kVf, kPf}));
  EXPECT_TRUE(monitor_.KeepOnly({kPf}));
  EXPECT_EQ(monitor_.Find(kVf), nullptr);
  EXPECT_TRUE(See(Vf(), GoodVf(), 3).empty());
  EXPECT_TRUE(IsHealthy(kVf));
}

// Setting the wall clock neither ends nor begins anything.
TEST_F(MonitorTest, OnlySteadyTimeCounts) {
  health::HealthTime now = At(0);
  (void)monitor_.Observe(Pf(), NoCarrier(GoodPf()), now);
  now.wall += std::chrono::hours(24);
  EXPECT_TRUE(monitor_.Observe(Pf(), NoCarrier(GoodPf()), now).empty());
  now.wall -= std::chrono::hours(48);
  now.steady += std::chrono::seconds(10);
  EXPECT_FALSE(monitor_.Observe(Pf(), NoCarrier(GoodPf()), now).empty());
}

// What a new process does with the saved state of an earlier one.

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
  health::HealthMonitor monitor{health::HealthRules()};
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
  health::HealthMonitor monitor{health::HealthRules()};
  monitor.Restore({Saved(Pf(), {}), Saved(Vf(), {})}, At(0));
  EXPECT_TRUE(monitor.Observe(Pf(), NoCarrier(GoodPf()), At(1)).empty());
  EXPECT_TRUE(monitor.Observe(Vf(), GoodVf(), At(1)).empty());
  EXPECT_TRUE(monitor.Observe(Pf(), NoCarrier(GoodPf()), At(10)).empty());
  EXPECT_EQ(monitor.Observe(Pf(), NoCarrier(GoodPf()), At(11)).size(), 2U);
}

TEST(MonitorRestartTest, WhatIsStillBadIsNoChange) {
  health::HealthMonitor monitor{health::HealthRules()};
  monitor.Restore({Saved(Pf(), {Reason(health::HealthRule::kLink, kPf, -100)})}, At(0));
  health::HealthRules link = Only(health::HealthRule::kLink);
  monitor.SetRules(link);
  for (int second = 1; second < 100; second += 5) {
    EXPECT_TRUE(monitor.Observe(Pf(), NoCarrier(GoodPf()), At(second)).empty());
  }
  EXPECT_EQ(monitor.Find(kPf)->reasons[0].since, At(-100).wall);
}

// A port must show an hour without errors. A restart neither ends that hour nor restarts it.
TEST(MonitorRestartTest, AWindowGoesOn) {
  health::HealthMonitor monitor{health::HealthRules()};
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
  health::HealthMonitor monitor(Only(health::HealthRule::kPauseStorm));
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

// Unreadable reasons (a later version's rules) do not keep a device unhealthy for ever.
TEST(MonitorRestartTest, UnhealthyWithoutReason) {
  health::HealthMonitor monitor{health::HealthRules()};
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

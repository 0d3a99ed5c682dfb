#include <gtest/gtest.h>

#include <limits>

#include "deviceplugin/services/health/judge.h"
#include "deviceplugin/services/health/rate_window.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

using Kind = health::Verdict::Kind;
using std::chrono::seconds;

Kind KindOf(health::HealthRule rule, const health::HealthSubject& subject, const health::Observation& seen) {
  return Judge(rule, subject, seen).kind;
}

TEST(JudgeTest, WellIsGoodForEveryRule) {
  for (const health::HealthRule rule : health::AllHealthRules()) {
    EXPECT_EQ(KindOf(rule, Pf(), GoodPf()), Kind::kGood) << NameOf(rule);
    EXPECT_EQ(KindOf(rule, Vf(), GoodVf()), Kind::kGood) << NameOf(rule);
  }
}

TEST(JudgeTest, Link) {
  const health::Verdict verdict = Judge(health::HealthRule::kLink, Pf(), NoCarrier(GoodPf()));
  EXPECT_EQ(verdict.kind, Kind::kBad);
  EXPECT_EQ(verdict.text, "PF pf0 (0000:43:00.0) has no carrier");
  EXPECT_EQ(Judge(health::HealthRule::kLink, Vf(), NoCarrier(GoodVf())).text,
            "VF 0000:43:02.0 has no carrier");
  health::HealthSubject subfunction = Vf("mlx5_core.sf.2");
  EXPECT_EQ(Judge(health::HealthRule::kLink, subfunction, NoCarrier(GoodVf())).text,
            "subfunction mlx5_core.sf.2 has no carrier");
  for (const auto& [state, kind] :
       {std::pair("dormant", Kind::kBad), {"testing", Kind::kBad}, {"unknown", Kind::kGood}}) {
    health::Observation seen = GoodPf();
    seen.link->operstate = state;
    EXPECT_EQ(KindOf(health::HealthRule::kLink, Pf(), seen), kind) << state;
  }
}

// A VF, and a PF that is given out itself, wait for their pod administratively down.
TEST(JudgeTest, WhatIsDownOnPurpose) {
  health::Observation vf = NoCarrier(GoodVf());
  vf.link->admin_up = false;
  vf.port = health::ObservedPort{"mlx5_2", PortState::kDown};
  EXPECT_EQ(KindOf(health::HealthRule::kLink, Vf(), vf), Kind::kGood);
  EXPECT_EQ(KindOf(health::HealthRule::kRdmaPort, Vf(), vf), Kind::kGood);
  health::Observation pf = NoCarrier(GoodPf());
  pf.link->admin_up = false;
  EXPECT_EQ(KindOf(health::HealthRule::kLink, Pf(0), pf), Kind::kGood);
  EXPECT_EQ(KindOf(health::HealthRule::kRdmaPort, Pf(0), pf), Kind::kGood);
  // With VFs it carries them.
  const health::Verdict verdict = Judge(health::HealthRule::kLink, Pf(), pf);
  EXPECT_EQ(verdict.kind, Kind::kBad);
  EXPECT_EQ(verdict.text, "PF pf0 (0000:43:00.0) is administratively down: ip link set pf0 up");
  EXPECT_EQ(KindOf(health::HealthRule::kRdmaPort, Pf(), pf), Kind::kBad);
  // IPoIB: the port below works.
  pf.port->state = PortState::kActive;
  EXPECT_EQ(KindOf(health::HealthRule::kLink, Pf(), pf), Kind::kGood);
}

TEST(JudgeTest, RdmaPort) {
  health::Observation seen = GoodPf();
  seen.port->state = PortState::kInit;
  const health::Verdict verdict = Judge(health::HealthRule::kRdmaPort, Pf(), seen);
  EXPECT_EQ(verdict.kind, Kind::kBad);
  EXPECT_EQ(verdict.text, "RDMA port 1 of mlx5_0 of PF pf0 (0000:43:00.0) is INIT");
  seen.port->state = PortState::kActiveDefer;
  EXPECT_EQ(KindOf(health::HealthRule::kRdmaPort, Pf(), seen), Kind::kGood);
  seen.port.reset();
  EXPECT_EQ(KindOf(health::HealthRule::kRdmaPort, Pf(), seen), Kind::kGood)
      << "no RDMA device is no bad port";
  // In shared mode the host sees the RDMA device of a VF that is in a pod or on its way.
  health::Observation away;
  away.port = health::ObservedPort{"mlx5_2", PortState::kDown};
  EXPECT_EQ(KindOf(health::HealthRule::kRdmaPort, Vf(), away), Kind::kGood);
}

TEST(JudgeTest, InAPod) {
  const health::HealthSubject vf = Vf(kVf, true);
  EXPECT_EQ(KindOf(health::HealthRule::kLink, vf, NoCarrier(GoodVf())), Kind::kExempt);
  EXPECT_EQ(KindOf(health::HealthRule::kRdmaPort, vf, GoodVf()), Kind::kExempt);
  health::Observation seen;
  seen.bound = false;
  EXPECT_EQ(KindOf(health::HealthRule::kUnbound, vf, seen), Kind::kBad);
  seen.present = false;
  EXPECT_EQ(KindOf(health::HealthRule::kGone, vf, seen), Kind::kBad);
}

TEST(JudgeTest, PresenceComesFirst) {
  health::Observation unbound;
  unbound.bound = false;
  EXPECT_EQ(Judge(health::HealthRule::kUnbound, Pf(), unbound).text,
            "PF pf0 (0000:43:00.0) is bound to no driver");
  EXPECT_EQ(KindOf(health::HealthRule::kLink, Pf(), unbound), Kind::kUnknown);
  EXPECT_EQ(KindOf(health::HealthRule::kRdmaPort, Pf(), unbound), Kind::kUnknown);
  health::Observation gone = unbound;
  gone.present = false;
  EXPECT_EQ(Judge(health::HealthRule::kGone, Vf(), gone).text, "PCI function 0000:43:02.0 no longer exists");
  EXPECT_EQ(KindOf(health::HealthRule::kUnbound, Vf(), gone), Kind::kUnknown) << "it is gone, not unbound";
  EXPECT_EQ(KindOf(health::HealthRule::kVfCount, Pf(), gone), Kind::kUnknown);
}

TEST(JudgeTest, VfCount) {
  health::Observation seen = GoodPf();
  seen.vf_count = 0;
  EXPECT_EQ(Judge(health::HealthRule::kVfCount, Pf(8), seen).text,
            "PF pf0 (0000:43:00.0) no longer has VFs: sriov_numvfs is 0, was 8");
  EXPECT_EQ(KindOf(health::HealthRule::kVfCount, Pf(0), seen), Kind::kGood) << "never had any";
}

TEST(JudgeTest, Devlink) {
  health::Observation seen = GoodPf();
  seen.failed_reporters = {"fw_fatal"};
  EXPECT_EQ(Judge(health::HealthRule::kDevlink, Pf(), seen).text,
            "the driver of PF pf0 (0000:43:00.0) reports an error: devlink health reporter fw_fatal");
}

TEST(JudgeTest, Rises) {
  const health::CounterLimit limit{"symbol_error", 120, std::chrono::seconds(3600)};
  EXPECT_EQ(JudgeRises(limit, Pf(), 120).kind, Kind::kGood);
  const health::Verdict verdict = JudgeRises(limit, Pf(), 121);
  EXPECT_EQ(verdict.kind, Kind::kBad);
  EXPECT_EQ(verdict.counter, "symbol_error");
  EXPECT_EQ(verdict.text, "symbol_error of PF pf0 (0000:43:00.0) rose by 121 within 3600 s (limit 120)");
}

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

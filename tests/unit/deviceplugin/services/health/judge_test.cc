#include <gtest/gtest.h>

#include "deviceplugin/services/health/monitor.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

using Kind = Verdict::Kind;

Kind KindOf(HealthRule rule, const HealthSubject& subject, const Observation& seen) {
  return Judge(rule, subject, seen).kind;
}

TEST(JudgeTest, WellIsGoodForEveryRule) {
  for (const HealthRule rule : AllHealthRules()) {
    EXPECT_EQ(KindOf(rule, Pf(), GoodPf()), Kind::kGood) << NameOf(rule);
    EXPECT_EQ(KindOf(rule, Vf(), GoodVf()), Kind::kGood) << NameOf(rule);
  }
}

TEST(JudgeTest, Link) {
  const Verdict verdict = Judge(HealthRule::kLink, Pf(), NoCarrier(GoodPf()));
  EXPECT_EQ(verdict.kind, Kind::kBad);
  EXPECT_EQ(verdict.text, "PF pf0 (0000:43:00.0) has no carrier");
  EXPECT_EQ(Judge(HealthRule::kLink, Vf(), NoCarrier(GoodVf())).text, "VF 0000:43:02.0 has no carrier");
  HealthSubject subfunction = Vf("mlx5_core.sf.2");
  EXPECT_EQ(Judge(HealthRule::kLink, subfunction, NoCarrier(GoodVf())).text,
            "subfunction mlx5_core.sf.2 has no carrier");
  for (const auto& [state, kind] :
       {std::pair("dormant", Kind::kBad), {"testing", Kind::kBad}, {"unknown", Kind::kGood}}) {
    Observation seen = GoodPf();
    seen.link->operstate = state;
    EXPECT_EQ(KindOf(HealthRule::kLink, Pf(), seen), kind) << state;
  }
}

TEST(JudgeTest, Impaired) {
  using State = ObservedRail::State;
  Observation seen = GoodPf();
  EXPECT_EQ(KindOf(HealthRule::kImpaired, Pf(), seen), Kind::kGood) << "nobody probes it";
  seen.rail = ObservedRail{State::kUnknown, ""};
  EXPECT_EQ(KindOf(HealthRule::kImpaired, Pf(), seen), Kind::kUnknown);
  seen.rail = ObservedRail{State::kAlive, ""};
  EXPECT_EQ(KindOf(HealthRule::kImpaired, Pf(), seen), Kind::kGood);
  seen.rail = ObservedRail{State::kImpaired, "mtu: gpu-002, gpu-003"};
  EXPECT_EQ(KindOf(HealthRule::kUnreachable, Pf(), seen), Kind::kGood) << "something is reached";
  const Verdict impaired = Judge(HealthRule::kImpaired, Pf(), seen);
  EXPECT_EQ(impaired.kind, Kind::kBad);
  EXPECT_EQ(impaired.text,
            "the rail of PF pf0 (0000:43:00.0) is ill towards most peers: mtu: gpu-002, gpu-003");
  seen.rail->state = State::kDead;
  EXPECT_EQ(KindOf(HealthRule::kImpaired, Pf(), seen), Kind::kBad)
      << "whoever is out of use must not come back by dying";
}

TEST(JudgeTest, Unreachable) {
  using State = ObservedRail::State;
  Observation seen = GoodPf();
  EXPECT_EQ(KindOf(HealthRule::kUnreachable, Pf(), seen), Kind::kGood) << "nobody probes it";
  seen.rail = ObservedRail{State::kUnknown, ""};
  EXPECT_EQ(KindOf(HealthRule::kUnreachable, Pf(), seen), Kind::kUnknown);
  seen.rail = ObservedRail{State::kAlive, ""};
  EXPECT_EQ(KindOf(HealthRule::kUnreachable, Pf(), seen), Kind::kGood);
  seen.rail = ObservedRail{State::kDead, "gateway 10.0.0.254 does not answer"};
  const Verdict dead = Judge(HealthRule::kUnreachable, Pf(), seen);
  EXPECT_EQ(dead.kind, Kind::kBad);
  EXPECT_EQ(dead.text,
            "the rail of PF pf0 (0000:43:00.0) reaches nothing: gateway 10.0.0.254 does not answer");
  seen.present = false;
  EXPECT_EQ(KindOf(HealthRule::kUnreachable, Pf(), seen), Kind::kUnknown);
  for (const State state : {State::kUnknown, State::kAlive, State::kImpaired, State::kDead})
    EXPECT_EQ(RailStateNamed(NameOf(state)), state);
}

// A VF, and a PF that is given out itself, wait for their pod administratively down.
TEST(JudgeTest, WhatIsDownOnPurpose) {
  Observation vf = NoCarrier(GoodVf());
  vf.link->admin_up = false;
  vf.port = ObservedPort{"mlx5_2", PortState::kDown};
  EXPECT_EQ(KindOf(HealthRule::kLink, Vf(), vf), Kind::kGood);
  EXPECT_EQ(KindOf(HealthRule::kRdmaPort, Vf(), vf), Kind::kGood);
  Observation pf = NoCarrier(GoodPf());
  pf.link->admin_up = false;
  EXPECT_EQ(KindOf(HealthRule::kLink, Pf(0), pf), Kind::kGood);
  EXPECT_EQ(KindOf(HealthRule::kRdmaPort, Pf(0), pf), Kind::kGood);
  // With VFs it carries them.
  const Verdict verdict = Judge(HealthRule::kLink, Pf(), pf);
  EXPECT_EQ(verdict.kind, Kind::kBad);
  EXPECT_EQ(verdict.text, "PF pf0 (0000:43:00.0) is administratively down: ip link set pf0 up");
  EXPECT_EQ(KindOf(HealthRule::kRdmaPort, Pf(), pf), Kind::kBad);
  // IPoIB: the port below works.
  pf.port->state = PortState::kActive;
  EXPECT_EQ(KindOf(HealthRule::kLink, Pf(), pf), Kind::kGood);
}

TEST(JudgeTest, RdmaPort) {
  Observation seen = GoodPf();
  seen.port->state = PortState::kInit;
  const Verdict verdict = Judge(HealthRule::kRdmaPort, Pf(), seen);
  EXPECT_EQ(verdict.kind, Kind::kBad);
  EXPECT_EQ(verdict.text, "RDMA port 1 of mlx5_0 of PF pf0 (0000:43:00.0) is INIT");
  seen.port->state = PortState::kActiveDefer;
  EXPECT_EQ(KindOf(HealthRule::kRdmaPort, Pf(), seen), Kind::kGood);
  seen.port.reset();
  EXPECT_EQ(KindOf(HealthRule::kRdmaPort, Pf(), seen), Kind::kGood) << "no RDMA device is no bad port";
  // In shared mode the host sees the RDMA device of a VF that is in a pod or on its way.
  Observation away;
  away.port = ObservedPort{"mlx5_2", PortState::kDown};
  EXPECT_EQ(KindOf(HealthRule::kRdmaPort, Vf(), away), Kind::kGood);
}

TEST(JudgeTest, InAPod) {
  const HealthSubject vf = Vf(kVf, true);
  EXPECT_EQ(KindOf(HealthRule::kLink, vf, NoCarrier(GoodVf())), Kind::kExempt);
  EXPECT_EQ(KindOf(HealthRule::kRdmaPort, vf, GoodVf()), Kind::kExempt);
  Observation seen;
  seen.bound = false;
  EXPECT_EQ(KindOf(HealthRule::kUnbound, vf, seen), Kind::kBad);
  seen.present = false;
  EXPECT_EQ(KindOf(HealthRule::kGone, vf, seen), Kind::kBad);
}

TEST(JudgeTest, PresenceComesFirst) {
  Observation unbound;
  unbound.bound = false;
  EXPECT_EQ(Judge(HealthRule::kUnbound, Pf(), unbound).text, "PF pf0 (0000:43:00.0) is bound to no driver");
  EXPECT_EQ(KindOf(HealthRule::kLink, Pf(), unbound), Kind::kUnknown);
  EXPECT_EQ(KindOf(HealthRule::kRdmaPort, Pf(), unbound), Kind::kUnknown);
  Observation gone = unbound;
  gone.present = false;
  EXPECT_EQ(Judge(HealthRule::kGone, Vf(), gone).text, "there is no PCI function 0000:43:02.0 any more");
  EXPECT_EQ(KindOf(HealthRule::kUnbound, Vf(), gone), Kind::kUnknown) << "it is gone, not unbound";
  EXPECT_EQ(KindOf(HealthRule::kVfCount, Pf(), gone), Kind::kUnknown);
}

TEST(JudgeTest, VfCount) {
  Observation seen = GoodPf();
  seen.vf_count = 0;
  EXPECT_EQ(Judge(HealthRule::kVfCount, Pf(8), seen).text,
            "PF pf0 (0000:43:00.0) has no VFs any more: sriov_numvfs is 0, was 8");
  EXPECT_EQ(KindOf(HealthRule::kVfCount, Pf(0), seen), Kind::kGood) << "never had any";
}

TEST(JudgeTest, Devlink) {
  Observation seen = GoodPf();
  seen.failed_reporters = {"fw_fatal"};
  EXPECT_EQ(Judge(HealthRule::kDevlink, Pf(), seen).text,
            "the driver of PF pf0 (0000:43:00.0) reports an error: devlink health reporter fw_fatal");
}

TEST(JudgeTest, Rises) {
  const CounterLimit limit{"symbol_error", 120, std::chrono::seconds(3600)};
  EXPECT_EQ(JudgeRises(limit, Pf(), 120).kind, Kind::kGood);
  const Verdict verdict = JudgeRises(limit, Pf(), 121);
  EXPECT_EQ(verdict.kind, Kind::kBad);
  EXPECT_EQ(verdict.counter, "symbol_error");
  EXPECT_EQ(verdict.text, "symbol_error of PF pf0 (0000:43:00.0) rose by 121 within 3600 s (limit 120)");
}

}  // namespace
}  // namespace railhead::testing

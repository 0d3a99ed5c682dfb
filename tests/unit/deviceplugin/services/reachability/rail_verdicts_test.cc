// What probes of its rails mean for a PF.
#include <gtest/gtest.h>

#include "deviceplugin/services/reachability/reachability_service.h"
#include "tests/unit/deviceplugin/services/reachability/reach_values.h"

namespace railhead::testing {
namespace {

using State = health::ObservedRail::State;
constexpr const char* kPf = "0000:40:00.0";

// Of kPf, which has rails in these states.
health::ObservedRail VerdictOf(const std::vector<reachability::ReachState>& states) {
  reachability::ReachReport report{"n", ReachWall(0), {}, {}};
  for (const reachability::ReachState state : states) {
    report.rails.push_back(RailOf("rail" + std::to_string(report.rails.size()), state, {}));
    report.rails.back().device = kPf;
    report.rails.back().probed = state != reachability::ReachState::kUnknown;
    report.rails.back().because = "because of " + report.rails.back().rail;
  }
  reachability::RailVerdicts verdicts;
  verdicts.Take(report);
  return verdicts.Of(kPf).value();
}

TEST(RailVerdictsTest, OfOneRail) {
  EXPECT_EQ(VerdictOf({reachability::ReachState::kDead}),
            (health::ObservedRail{State::kDead, "because of rail0"}));
  EXPECT_EQ(VerdictOf({reachability::ReachState::kDegraded}).state, State::kAlive);
  EXPECT_EQ(VerdictOf({reachability::ReachState::kReachable}).state, State::kAlive);
  EXPECT_EQ(VerdictOf({reachability::ReachState::kUnknown}).state, State::kUnknown);
  EXPECT_EQ(reachability::RailVerdicts().Of(kPf), std::nullopt);
}

// What one node does wrong looks to it as if all others did.
TEST(RailVerdictsTest, OfARailThatIsIllTowardsMost) {
  const auto verdict = [](const std::vector<reachability::PeerState>& states) {
    std::vector<reachability::PeerReach> peers;
    for (const reachability::PeerState state : states)
      peers.push_back(PeerOf(NodeNumber(static_cast<int>(peers.size())), state));
    reachability::ReachReport report{
        "n", ReachWall(0), {RailOf("rail0", reachability::ReachState::kDegraded, peers)}, {}};
    report.rails[0].probed = true;
    report.rails[0].because = "why";
    reachability::RailVerdicts verdicts;
    verdicts.Take(report);
    return verdicts.Of(report.rails[0].device).value();
  };
  using Peer = reachability::PeerState;
  EXPECT_EQ(verdict({Peer::kMtu, Peer::kMtu, Peer::kReachable}),
            (health::ObservedRail{State::kImpaired, "why"}));
  EXPECT_EQ(verdict({Peer::kOneWay, Peer::kLossy, Peer::kPaths, Peer::kReachable}).state, State::kImpaired);
  EXPECT_EQ(verdict({Peer::kNoRdma, Peer::kNoRdma, Peer::kReachable}).state, State::kImpaired);
  EXPECT_EQ(verdict({Peer::kLossy, Peer::kLossy, Peer::kUnknown, Peer::kUnknown, Peer::kUnknown}).state,
            State::kImpaired);
  EXPECT_EQ(verdict({Peer::kMtu, Peer::kReachable, Peer::kReachable}).state, State::kAlive);
  EXPECT_EQ(verdict({Peer::kMtu, Peer::kMtu, Peer::kReachable, Peer::kReachable}).state, State::kAlive)
      << "half may be a leaf's";
  EXPECT_EQ(verdict({Peer::kMtu}).state, State::kAlive) << "that may be the peer's";
  EXPECT_EQ(verdict({Peer::kSilent, Peer::kSilent, Peer::kSilent, Peer::kReachable}).state, State::kAlive)
      << "they may be switched off";
}

// In whichever order: out of use is it only with all of them.
TEST(RailVerdictsTest, OfRailsThatShareAPf) {
  EXPECT_EQ(VerdictOf({reachability::ReachState::kDead, reachability::ReachState::kReachable}).state,
            State::kAlive);
  EXPECT_EQ(VerdictOf({reachability::ReachState::kReachable, reachability::ReachState::kDead}).state,
            State::kAlive);
  EXPECT_EQ(VerdictOf({reachability::ReachState::kUnknown, reachability::ReachState::kReachable}).state,
            State::kAlive);
  EXPECT_EQ(VerdictOf({reachability::ReachState::kDead, reachability::ReachState::kUnknown}).state,
            State::kUnknown);
  EXPECT_EQ(VerdictOf({reachability::ReachState::kUnknown, reachability::ReachState::kDead}).state,
            State::kUnknown);
  EXPECT_EQ(VerdictOf({reachability::ReachState::kDead, reachability::ReachState::kDead}),
            (health::ObservedRail{State::kDead, "because of rail0; because of rail1"}));
}

}  // namespace
}  // namespace railhead::testing

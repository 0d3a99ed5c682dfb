#include "deviceplugin/services/reachability/rail_verdicts.h"

#include <algorithm>
#include <utility>

namespace railhead {
namespace {

// One peer of two may be ill itself.
constexpr std::size_t kFewestIll = 2;

bool MostAreIll(const std::vector<PeerReach>& peers) {
  std::size_t well = 0;
  std::size_t ill = 0;
  for (const PeerReach& peer : peers) {
    if (peer.state == PeerState::kReachable) {
      ++well;
    } else if (peer.state != PeerState::kUnknown && peer.state != PeerState::kSilent) {
      ++ill;
    }
  }
  return ill >= kFewestIll && ill > well;
}

ObservedRail VerdictOn(const RailReach& rail) {
  using State = ObservedRail::State;
  if (!rail.probed || rail.state == ReachState::kUnknown) return {};
  if (rail.state == ReachState::kDead) return {State::kDead, rail.because};
  if (MostAreIll(rail.peers)) return {State::kImpaired, rail.because};
  return {State::kAlive, {}};
}

// Of two rails of one PF: it is out of use only when all that goes through it is ill.
ObservedRail Better(ObservedRail a, ObservedRail b) {
  using State = ObservedRail::State;
  for (const State state : {State::kAlive, State::kUnknown}) {
    if (a.state == state) return a;
    if (b.state == state) return b;
  }
  return {std::min(a.state, b.state), a.because + "; " + b.because};
}

}  // namespace

void RailVerdicts::Take(const ReachReport& report) {
  std::map<std::string, ObservedRail> rails;
  for (const RailReach& rail : report.rails) {
    if (rail.device.empty()) continue;
    const auto [at, first] = rails.try_emplace(rail.device, VerdictOn(rail));
    if (!first) at->second = Better(std::move(at->second), VerdictOn(rail));
  }
  const std::lock_guard lock(mutex_);
  rails_ = std::move(rails);
}

std::optional<ObservedRail> RailVerdicts::Of(const std::string& pf) const {
  const std::lock_guard lock(mutex_);
  const auto found = rails_.find(pf);
  if (found == rails_.end()) return std::nullopt;
  return found->second;
}

bool RailVerdicts::AnyIs(const std::function<bool(const ObservedRail&)>& such) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(rails_.begin(), rails_.end(), [&](const auto& rail) { return such(rail.second); });
}

}  // namespace railhead

#include "deviceplugin/daemon/rail_verdicts.h"

#include <utility>

namespace railhead {
namespace {

ObservedRail VerdictOn(const RailReach& rail) {
  using State = ObservedRail::State;
  if (!rail.probed || rail.state == ReachState::kUnknown) return {};
  if (rail.state == ReachState::kDead) return {State::kDead, rail.because};
  return {State::kAlive, {}};
}

// Of two rails of one PF: it is out of use only when nothing that goes through it is reached.
ObservedRail Better(ObservedRail a, ObservedRail b) {
  using State = ObservedRail::State;
  for (const State state : {State::kAlive, State::kUnknown}) {
    if (a.state == state) return a;
    if (b.state == state) return b;
  }
  return {State::kDead, a.because + "; " + b.because};
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

}  // namespace railhead

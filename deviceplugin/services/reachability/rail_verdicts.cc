#include "deviceplugin/services/reachability/rail_verdicts.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace railhead::reachability {
namespace {

// A single faulty peer may have the fault itself.
constexpr std::size_t kFewestFaulty = 2;

bool MostAreFaulty(const std::vector<PeerReachability>& peers) {
  std::size_t well = 0;
  std::size_t faulty = 0;
  for (const PeerReachability& peer : peers) {
    if (peer.state == PeerState::kReachable) {
      ++well;
    } else if (peer.state != PeerState::kUnknown && peer.state != PeerState::kSilent) {
      ++faulty;
    }
  }
  return faulty >= kFewestFaulty && faulty > well;
}

enum class Verdict : std::uint8_t { kUnknown, kWell, kImpaired, kDead };

Verdict VerdictOn(const RailReachability& rail) {
  if (!rail.probed || rail.state == ReachabilityState::kUnknown) return Verdict::kUnknown;
  if (rail.state == ReachabilityState::kDead) return Verdict::kDead;
  return MostAreFaulty(rail.peers) ? Verdict::kImpaired : Verdict::kWell;
}

std::string Describe(Verdict verdict, const std::string& because) {
  const char* const how =
      verdict == Verdict::kDead ? "probes reach nothing" : "probes find faults to most peers";
  return how + (because.empty() ? "" : ": " + because);
}

}  // namespace

bool RailVerdicts::Update(const ReachabilityReport& report, Clock::time_point now) {
  bool changed = false;
  std::map<std::string, Rail> rails;
  for (const RailReachability& seen : report.rails) {
    Rail rail = rails_[seen.rail];
    const std::string before = rail.fault;
    const Verdict verdict = VerdictOn(seen);
    // What is not known proves neither.
    if (verdict != Verdict::kWell) rail.well_since.reset();
    if (verdict != Verdict::kImpaired) rail.impaired_since.reset();
    if (verdict == Verdict::kWell && !rail.well_since) rail.well_since = now;
    if (verdict == Verdict::kImpaired && !rail.impaired_since) rail.impaired_since = now;
    if (rail.well_since && now - *rail.well_since >= kWellAfter) rail.fault.clear();
    const bool is_bad =
        verdict == Verdict::kDead || (rail.impaired_since && now - *rail.impaired_since >= kImpairedAfter);
    if (is_bad && rail.fault.empty()) rail.fault = Describe(verdict, seen.because);
    changed = changed || rail.fault != before;
    rails[seen.rail] = std::move(rail);
  }
  // A rail that is no longer probed has no fault.
  for (const auto& [name, rail] : rails_) changed = changed || (!rail.fault.empty() && !rails.contains(name));
  rails_ = std::move(rails);
  return changed;
}

RailFaults RailVerdicts::Faults() const {
  RailFaults faults;
  for (const auto& [name, rail] : rails_) {
    if (!rail.fault.empty()) faults.emplace(name, rail.fault);
  }
  return faults;
}

}  // namespace railhead::reachability

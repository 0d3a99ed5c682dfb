#include "deviceplugin/services/reachability/reachability_report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "netns/base/text.h"
#include "netns/json/record_io.h"

template struct railhead::StateFile<railhead::reachability::ReachabilityReport>;

namespace railhead::reachability {
namespace {

using Wall = std::chrono::system_clock;

ReachabilityReport WithCommonTimes(ReachabilityReport report) {
  for (RailReachability& rail : report.rails) {
    for (PeerReachability& peer : rail.peers) {
      if (peer.since == Wall::time_point()) peer.since = rail.since;
    }
  }
  return report;
}

}  // namespace

std::size_t RailReachability::Count(PeerState peer_state) const {
  return static_cast<std::size_t>(std::ranges::count(peers, peer_state, &PeerReachability::state));
}

const RailReachability* ReachabilityReport::Find(const std::string& rail) const {
  const auto found = std::ranges::find(rails, rail, &RailReachability::rail);
  return found == rails.end() ? nullptr : &*found;
}

// Of thousands of peers most have what the rail has.
ReachabilityReport WithoutCommonTimes(ReachabilityReport report) {
  for (RailReachability& rail : report.rails) {
    const auto since = std::chrono::floor<std::chrono::seconds>(rail.since);
    for (PeerReachability& peer : rail.peers) {
      if (std::chrono::floor<std::chrono::seconds>(peer.since) == since) peer.since = {};
    }
  }
  return report;
}

Result<ReachabilityReport> ParseReachabilityReport(std::string_view text, const std::string& what) {
  return WithCommonTimes(
      RH_TRY(ParseRecord<ReachabilityReport>(text, what, UnknownFields::kPassOver, kMaxReachabilityReport)));
}

Result<std::optional<ReachabilityReport>> ReadReachabilityReport(const Root& root) {
  auto report = RH_TRY(kReachabilityFile.Read(root));
  return report ? std::optional(WithCommonTimes(*std::move(report))) : std::nullopt;
}

Result<void> WriteReachabilityReport(const Root& root, const ReachabilityReport& report) {
  return kReachabilityFile.Write(root, WithoutCommonTimes(report));
}

std::optional<RttSpread> SpreadOfRtt(const RailReachability& rail) {
  std::vector<std::chrono::microseconds> times;
  for (const PeerReachability& peer : rail.peers) {
    if (peer.state == PeerState::kReachable && peer.rtt) times.push_back(*peer.rtt);
  }
  if (times.empty()) return std::nullopt;
  std::ranges::sort(times);
  // Of an even number the smaller one: a time that was measured.
  return RttSpread{times[(times.size() - 1) / 2], times.back()};
}

std::string PeersOf(const RailReachability& rail) {
  std::vector<std::string> parts;
  const auto add = [&](PeerState state) {
    if (const std::size_t count = rail.Count(state); count != 0)
      parts.push_back(std::to_string(count) + " " + std::string(WordOf(state)));
  };
  for (const auto& [word, state] : Names<PeerState>::kAll) {
    if (state != PeerState::kUnknown) add(state);
  }
  add(PeerState::kUnknown);  // it says least
  return Join(parts, ", ");
}

std::string GatewayOf(const RailReachability& rail) {
  if (!rail.gateway) return "";
  return rail.gateway->answers ? "answers" : "silent";
}

std::string RdmaOf(const RailReachability& rail) {
  if (!rail.rdma || rail.rdma->device.empty()) return "";
  return rail.rdma->device + "[" + std::to_string(rail.rdma->gid_index.value_or(0)) + "]";
}

std::string RttText(std::optional<std::chrono::microseconds> rtt) {
  return rtt ? std::to_string(rtt->count()) + "us" : "";
}

}  // namespace railhead::reachability

#include "deviceplugin/services/reachability/reach_report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "netns/base/text.h"
#include "netns/json/record_io.h"

template struct railhead::StateFile<railhead::reachability::ReachReport>;

namespace railhead::reachability {
namespace {

using Wall = std::chrono::system_clock;

ReachReport WithCommonTimes(ReachReport report) {
  for (RailReach& rail : report.rails) {
    for (PeerReach& peer : rail.peers) {
      if (peer.since == Wall::time_point()) peer.since = rail.since;
    }
  }
  return report;
}

}  // namespace

std::size_t RailReach::Count(PeerState wanted) const {
  return static_cast<std::size_t>(std::ranges::count(peers, wanted, &PeerReach::state));
}

const RailReach* ReachReport::Find(const std::string& rail) const {
  const auto found = std::ranges::find(rails, rail, &RailReach::rail);
  return found == rails.end() ? nullptr : &*found;
}

// Of thousands of peers most have what the rail has.
ReachReport WithoutCommonTimes(ReachReport report) {
  for (RailReach& rail : report.rails) {
    const auto since = std::chrono::floor<std::chrono::seconds>(rail.since);
    for (PeerReach& peer : rail.peers) {
      if (std::chrono::floor<std::chrono::seconds>(peer.since) == since) peer.since = {};
    }
  }
  return report;
}

Result<ReachReport> ParseReachReport(std::string_view text, const std::string& what) {
  return WithCommonTimes(
      RH_TRY(ParseRecord<ReachReport>(text, what, UnknownFields::kPassOver, kMaxReachReport)));
}

Result<std::optional<ReachReport>> ReadReachReport(const Root& root) {
  auto report = RH_TRY(kReachFile.Read(root));
  return report ? std::optional(WithCommonTimes(*std::move(report))) : std::nullopt;
}

Result<void> WriteReachReport(const Root& root, const ReachReport& report) {
  return kReachFile.Write(root, WithoutCommonTimes(report));
}

std::optional<RttSpread> SpreadOfRtt(const RailReach& rail) {
  std::vector<std::chrono::microseconds> times;
  for (const PeerReach& peer : rail.peers) {
    if (peer.state == PeerState::kReachable && peer.rtt) times.push_back(*peer.rtt);
  }
  if (times.empty()) return std::nullopt;
  std::ranges::sort(times);
  // Of an even number the smaller one: a time that was measured.
  return RttSpread{times[(times.size() - 1) / 2], times.back()};
}

std::string PeersOf(const RailReach& rail) {
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

std::string GatewayOf(const RailReach& rail) {
  if (!rail.gateway) return "";
  return rail.gateway->answers ? "answers" : "silent";
}

std::string RdmaOf(const RailReach& rail) {
  if (!rail.rdma || rail.rdma->device.empty()) return "";
  return rail.rdma->device + "[" + std::to_string(rail.rdma->gid_index.value_or(0)) + "]";
}

std::string RttText(std::optional<std::chrono::microseconds> rtt) {
  return rtt ? std::to_string(rtt->count()) + "us" : "";
}

}  // namespace railhead::reachability

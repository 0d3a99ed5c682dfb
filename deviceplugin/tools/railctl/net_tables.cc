#include "deviceplugin/tools/railctl/net_tables.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/reachability/reach_summary.h"
#include "deviceplugin/tools/railctl/print.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

// Of a rail, unless all are asked for: a dead rail has a line for itself.
constexpr std::size_t kMostPeers = 16;

constexpr std::array kPeerStates = {PeerState::kReachable, PeerState::kLossy,  PeerState::kPaths,
                                    PeerState::kMtu,       PeerState::kNoRdma, PeerState::kOneWay,
                                    PeerState::kSilent,    PeerState::kUnknown};

bool IsIll(PeerState state) {
  return state > PeerState::kReachable;
}

bool IsIll(ReachState state) {
  return state > ReachState::kReachable;
}

std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string SpanSince(std::chrono::system_clock::time_point since) {
  if (since == std::chrono::system_clock::time_point()) return "-";
  return AgeOf(since);
}

std::string PeersOf(const RailReach& rail) {
  std::vector<std::string> parts;
  for (const PeerState state : kPeerStates) {
    const std::size_t count = rail.Count(state);
    if (count != 0) parts.push_back(std::to_string(count) + " " + std::string(NameOf(state)));
  }
  return OrDash(Join(parts, ", "));
}

std::string RttText(std::optional<std::chrono::microseconds> rtt) {
  return rtt ? std::to_string(rtt->count()) + "us" : "-";
}

// The median over the peers, as the metrics have it.
std::string RttOf(const RailReach& rail) {
  const auto spread = SpreadOfRtt(rail);
  return RttText(spread ? std::optional(spread->median) : std::nullopt);
}

std::string GatewayOf(const RailReach& rail) {
  if (!rail.gateway) return "-";
  return rail.gateway->answers ? "answers" : "silent";
}

// "mlx5_0[3]": device and index of the GID.
std::string RdmaOf(const RailReach& rail) {
  if (!rail.rdma || rail.rdma->device.empty()) return "-";
  return rail.rdma->device + "[" + std::to_string(rail.rdma->gid_index) + "]";
}

void PrintReachedRails(const ReachReport& report) {
  const bool rdma = std::any_of(report.rails.begin(), report.rails.end(),
                                [](const RailReach& rail) { return rail.rdma.has_value(); });
  std::vector<Row> rows = {{"RAIL", "PF", "STATE", "SINCE", "GATEWAY", "PEERS", "RDMA", "RTT", "BECAUSE"}};
  for (const RailReach& rail : report.rails) {
    rows.push_back({rail.rail, OrDash(rail.pf), std::string(NameOf(rail.state)), SpanSince(rail.since),
                    GatewayOf(rail), PeersOf(rail), RdmaOf(rail), RttOf(rail), rail.because});
  }
  constexpr std::ptrdiff_t kRdmaColumn = 6;
  if (!rdma) {
    for (Row& row : rows) row.erase(row.begin() + kRdmaColumn);
  }
  PrintTable(rows);
}

std::string AnsweredText(std::uint32_t answered, std::uint32_t sent) {
  return std::to_string(answered) + "/" + std::to_string(sent);
}

Row PeerRow(const RailReach& rail, const PeerReach& peer) {
  return {rail.rail,
          peer.node,
          peer.address.ToString(),
          std::string(NameOf(peer.state)),
          SpanSince(peer.since),
          AnsweredText(peer.answered, peer.sent),
          RttText(peer.rtt),
          peer.because};
}

void PrintReachedPeers(const ReachReport& report, bool all) {
  std::vector<Row> rows = {{"RAIL", "PEER", "ADDRESS", "STATE", "SINCE", "ANSWERED", "RTT", "BECAUSE"}};
  std::vector<std::string> left_out;
  for (const RailReach& rail : report.rails) {
    std::vector<const PeerReach*> shown;
    for (const PeerReach& peer : rail.peers) {
      if (all || IsIll(peer.state)) shown.push_back(&peer);
    }
    const std::size_t most = all ? shown.size() : std::min(shown.size(), kMostPeers);
    for (std::size_t i = 0; i < most; ++i) rows.push_back(PeerRow(rail, *shown[i]));
    if (most < shown.size())
      left_out.push_back(rail.rail + ": " + std::to_string(shown.size() - most) + " more peers (--all)");
  }
  if (rows.size() == 1) return;
  (void)std::printf("\n");
  PrintTable(rows);
  for (const std::string& line : left_out) (void)std::printf("%s\n", line.c_str());
}

void PrintReachedPods(const ReachReport& report, bool all) {
  std::vector<Row> rows = {{"POD", "INTERFACE", "RAIL", "DEVICE", "STATE", "SINCE", "ANSWERED", "BECAUSE"}};
  for (const PodReach& pod : report.pods) {
    if (!all && !IsIll(pod.state)) continue;
    rows.push_back({pod.Name(), pod.interface, pod.rail, OrDash(pod.device), std::string(NameOf(pod.state)),
                    SpanSince(pod.since), AnsweredText(pod.answered, pod.sent), pod.because});
  }
  if (rows.size() == 1) return;
  (void)std::printf("\n");
  PrintTable(rows);
}

}  // namespace

void PrintReach(const ReachReport& report, bool all) {
  PrintReachedRails(report);
  PrintReachedPeers(report, all);
  PrintReachedPods(report, all);
}

bool HasFault(const ReachReport& report) {
  const auto ill = [](const RailReach& rail) {
    return IsIll(rail.state) || (rail.gateway && !rail.gateway->answers) ||
           std::any_of(rail.peers.begin(), rail.peers.end(),
                       [](const PeerReach& peer) { return IsIll(peer.state); });
  };
  return std::any_of(report.rails.begin(), report.rails.end(), ill) ||
         std::any_of(report.pods.begin(), report.pods.end(),
                     [](const PodReach& pod) { return IsIll(pod.state); });
}

}  // namespace railhead::railctl

// A node's reachability reports, as values.
#pragma once

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/reachability/reachability_report.h"

namespace railhead::testing {

inline std::chrono::system_clock::time_point ReachabilityWall(int seconds) {
  return std::chrono::system_clock::time_point(std::chrono::seconds(1'800'000'000 + seconds));
}

// "gpu-007"
inline std::string NodeNumber(int number) {
  std::string digits = std::to_string(number);
  return "gpu-" + std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0') + digits;
}

inline reachability::PeerReachability PeerOf(const std::string& node, reachability::PeerState state,
                                             const std::string& because = "") {
  reachability::PeerReachability peer;
  peer.node = node;
  peer.address = *IpAddress::Parse("10.0.0.1");
  peer.state = state;
  peer.since = ReachabilityWall(0);
  peer.because = because;
  peer.sent = 80;
  peer.answered = state == reachability::PeerState::kReachable ? 80 : 0;
  peer.paths = 8;
  if (state == reachability::PeerState::kReachable) peer.rtt = std::chrono::microseconds(12);
  return peer;
}

inline reachability::RailReachability RailOf(const std::string& name, reachability::ReachabilityState state,
                                             std::vector<reachability::PeerReachability> peers) {
  reachability::RailReachability rail;
  rail.rail = name;
  rail.device = "0000:4" + name.substr(name.size() - 1) + ":00.0";
  rail.pf = "pf" + name.substr(name.size() - 1);
  rail.state = state;
  rail.since = ReachabilityWall(0);
  rail.probe_address = IpAddress::Parse("10.0.0.9");
  rail.gateway = reachability::GatewayReachability{
      *IpAddress::Parse("10.0.0.254"), true, MacAddress::Parse("02:00:00:00:00:fe"), ReachabilityWall(0)};
  rail.peers = std::move(peers);
  rail.probes = 1000;
  rail.answers = 990;
  return rail;
}

using BadPairs = std::map<std::pair<int, int>, reachability::PeerState>;

// The report of node `from` among `nodes` nodes (gpu-000 and so on). On one rail it reaches all others,
// except for the pairs (from, to) in `bad`.
inline reachability::ReachabilityReport ReportOf(int from, int nodes, const BadPairs& bad,
                                                 const std::string& rail = "rail0") {
  std::vector<reachability::PeerReachability> peers;
  for (int to = 0; to < nodes; ++to) {
    if (to == from) continue;
    const auto found = bad.find({from, to});
    peers.push_back(
        PeerOf(NodeNumber(to), found == bad.end() ? reachability::PeerState::kReachable : found->second));
  }
  reachability::ReachabilityReport report{NodeNumber(from), ReachabilityWall(0), {}, {}};
  report.rails.push_back(RailOf(rail, reachability::ReachabilityState::kReachable, std::move(peers)));
  return report;
}

inline std::vector<reachability::ReachabilityReport> Cluster(int nodes, const BadPairs& bad) {
  std::vector<reachability::ReachabilityReport> reports;
  reports.reserve(static_cast<std::size_t>(nodes));
  for (int from = 0; from < nodes; ++from) reports.push_back(ReportOf(from, nodes, bad));
  return reports;
}

}  // namespace railhead::testing

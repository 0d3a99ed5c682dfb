// AnswerLimits: how many answers senders get in a second, so that no sender takes the answers of a peer.
//
// Each peer has a limit of its own. All other senders share one, and at most kOthers of them are answered in
// kOthersTime. That second limit protects the kernel's neighbour table, which all network namespaces of the
// node share. Each answered address takes an entry for five seconds or more. A full table costs every rail
// its new neighbours (gc_thresh3 and neigh_forced_gc in net/core/neighbour.c). Threads: one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <set>

#include "netns/base/addresses.h"

namespace railhead::reachability {

class AnswerLimits {
 public:
  using Clock = std::chrono::steady_clock;
  // More than the pods that probe one endpoint: pods probe the endpoints of the nodes next to theirs.
  static constexpr std::size_t kOthers = 32;
  static constexpr std::chrono::seconds kOthersTime{5};

  // In a second: for each peer, and for all others together.
  AnswerLimits(int of_peer, int of_others) : of_peer_(of_peer), of_others_(of_others) {}

  // The used part of a limit stays used for peers that remain.
  void SetPeers(const std::set<IpAddress>& peers);
  [[nodiscard]] bool IsPeer(const IpAddress& sender) const { return peers_.contains(sender); }
  // Whether `sender` gets an answer now. If so, the answer counts.
  bool Allow(const IpAddress& sender, Clock::time_point now);

 private:
  struct Used {
    Clock::time_point since;  // when the second began
    int answers = 0;
  };
  static bool Use(Used* used, int most, Clock::time_point now);

  const int of_peer_;
  const int of_others_;
  std::map<IpAddress, Used> peers_;
  Used by_others_;
  std::set<IpAddress> others_;  // the others that were answered since `since`
  Clock::time_point others_since_;
};

}  // namespace railhead::reachability

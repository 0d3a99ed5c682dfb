// AnswerLimits: how many answers senders get in a second, so that no sender takes the answers of a peer.
//
// Each peer has a limit of its own. All other senders share one, and at most kOthers of them are answered in
// kOthersTime. The latter protects the kernel's neighbour table: all network namespaces of the node share it,
// each address that is answered takes an entry for five seconds or more, and a full table costs every rail
// its new neighbours (gc_thresh3 and neigh_forced_gc in net/core/neighbour.c). Threads: one at a time.
#pragma once

#include <chrono>
#include <map>
#include <set>

#include "netns/base/ip_address.h"

namespace railhead {

class AnswerLimits {
 public:
  using Clock = std::chrono::steady_clock;
  // More than the pods that probe one station: each node's pods probe those of the nodes next to it.
  static constexpr std::size_t kOthers = 32;
  static constexpr std::chrono::seconds kOthersTime{5};

  // In a second: for each peer, and for all others together.
  AnswerLimits(int of_peer, int of_others) : of_peer_(of_peer), of_others_(of_others) {}

  // What peers that stay have used stays used.
  void SetPeers(const std::set<IpAddress>& peers);
  [[nodiscard]] bool IsPeer(const IpAddress& sender) const { return peers_.contains(sender); }
  // Whether `sender` gets an answer now, which is counted then.
  bool May(const IpAddress& sender, Clock::time_point now);

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
  std::set<IpAddress> others_;  // that were answered since then
  Clock::time_point others_since_;
};

}  // namespace railhead

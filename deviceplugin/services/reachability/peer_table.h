// PeerTable: the other nodes' stations on one rail: whom to probe next, and what the answers mean.
//
// A visit is what one round sends to one peer: each source port `kPerPath` small packets, one packet of the
// rail's MTU, and after a large one was lost the smaller sizes of kSizes. A peer is judged by its last two
// visits, so that a single bad moment is none: bad after two visits that are, well after two that are.
// Peers that are not well, and those visited once, come first: they are in every round, kSuspects at most;
// all others take turns. Threads: a value; one at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "deviceplugin/services/reachability/reach_report.h"

namespace railhead::reachability {

struct Visit {
  std::vector<std::uint8_t> answered;  // of kPerPath, by path
  bool large_sent = false;             // by the own device
  bool large_answered = false;
  std::optional<int> passed;  // the largest of kSizes that was answered, in bytes
  std::uint32_t sent = 0;     // to the peer's count of what it heard: all sizes
  std::uint32_t all_answered = 0;
  std::optional<std::uint32_t> heard;  // the highest that the peer told; nullopt: no answer
  std::optional<std::chrono::microseconds> rtt;
  std::uint32_t rdma_sent = 0;  // 0: one of both has no RDMA
  std::uint32_t rdma_answered = 0;
  bool peer_was_heard = false;  // its own probes came in since the visit before
};

class PeerTable {
 public:
  using Wall = std::chrono::system_clock;
  static constexpr int kPerPath = 2;
  static constexpr std::size_t kSuspects = 8;
  // Of IP packets: those that switches are set to.
  static constexpr std::array<int, 6> kSizes = {1280, 1500, 2048, 4096, 8192, 9000};
  // Packets of a visit at most.
  static constexpr int MostOfVisit(int paths) {
    return kPerPath * paths + 1 + static_cast<int>(kSizes.size());
  }

  // What is known of those that stay is kept.
  void SetPeers(const std::map<std::string, IpAddress>& stations, const std::string& own,
                Wall::time_point now);
  // They cannot be probed: nothing is known of them until they were visited anew.
  void Forget(Wall::time_point now);
  // From an earlier life.
  void Restore(const std::vector<PeerReach>& peers);

  // Indices into peers(): suspects, and `turns` of the others.
  std::vector<std::size_t> Choose(std::size_t turns, std::mt19937_64& random);
  // Whether the next visit should try kSizes, too.
  [[nodiscard]] bool LostLarge(std::size_t peer) const;
  [[nodiscard]] std::uint64_t Session(std::size_t peer) const { return all_[peer].session; }
  // true: its state is another one now.
  bool Take(std::size_t peer, Visit visit, Wall::time_point now);

  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] const PeerReach& At(std::size_t peer) const { return all_[peer].reach; }
  [[nodiscard]] std::vector<PeerReach> Reaches() const;

 private:
  struct Peer {
    PeerReach reach;
    std::optional<Visit> last;
    std::uint64_t session = 0;
    // Since the peer last said how many of the session it has: what was sent, what came back of it.
    std::uint32_t sent = 0;
    std::uint32_t answered = 0;
    std::uint32_t heard = 0;    // what it said
    std::uint64_t visited = 0;  // the last round; 0: never
  };
  static void CountWays(Peer* peer, const Visit& visit);

  std::vector<Peer> all_;  // by node name
  std::uint64_t round_ = 0;
};

// What two visits tell of a peer, older first; `reach` gets state, because, counts.
void JudgePeer(const Visit& before, const Visit& now, PeerReach* reach);

}  // namespace railhead::reachability

// PeerTable: the other nodes' probe endpoints on one rail: which to probe next, and what the answers mean.
//
// In a burst, one round sends to one peer: `kPerPath` small packets from each source port, and one packet of
// the rail's MTU. If the peer did not answer a large packet, the next burst has the smaller sizes of kSizes,
// too. Two bursts decide, the last ones, so that a single bad one changes nothing. Faulty peers, and those
// with a bad last burst, are in every round, kSuspects at most. All others take turns. Threads: a value; one
// at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "deviceplugin/services/reachability/reachability_report.h"

namespace railhead::reachability {

struct BurstResult {
  std::vector<std::uint8_t> answered;  // of kPerPath, by path
  bool large_sent = false;             // this node's device accepted it
  bool large_answered = false;
  std::optional<int> passed;  // the largest of kSizes that was answered, in bytes
  std::uint32_t sent = 0;     // the packets of all sizes that the peer's count covers
  std::uint32_t all_answered = 0;
  std::optional<std::uint32_t> heard;  // the highest count in its answers; nullopt: no answer
  std::optional<std::chrono::microseconds> rtt;
  std::uint32_t rdma_sent = 0;  // 0: this node or the peer has no RDMA
  std::uint32_t rdma_answered = 0;
  bool peer_was_heard = false;  // its own probes arrived since the burst before
};

class PeerTable {
 public:
  using Wall = std::chrono::system_clock;
  static constexpr int kPerPath = 2;
  static constexpr std::size_t kSuspects = 8;
  // Sizes of IP packets that switches are commonly configured for.
  static constexpr std::array<int, 6> kSizes = {1280, 1500, 2048, 4096, 8192, 9000};
  // Packets of a burst at most.
  static constexpr int MostOfBurst(int paths) {
    return kPerPath * paths + 1 + static_cast<int>(kSizes.size());
  }

  // Results of peers that stay are kept.
  void SetPeers(const std::map<std::string, IpAddress>& addresses, const std::string& own,
                Wall::time_point now);
  // This node cannot probe: all peers are unknown until their next burst.
  void Forget(Wall::time_point now);
  // From the report of an earlier process.
  void Restore(const std::vector<PeerReachability>& peers);

  // Indices into peers(): suspects, and `turns` of the others.
  std::vector<std::size_t> Choose(std::size_t turns, std::mt19937_64& random);
  // Whether the next burst should have kSizes, too.
  [[nodiscard]] bool LostLarge(std::size_t peer) const;
  [[nodiscard]] std::uint64_t Session(std::size_t peer) const { return all_[peer].session; }
  // true: the peer's state has changed.
  bool AddResult(std::size_t peer, BurstResult burst, Wall::time_point now);

  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] const PeerReachability& At(std::size_t peer) const { return all_[peer].reach; }
  [[nodiscard]] std::vector<PeerReachability> Peers() const;

 private:
  struct Peer {
    PeerReachability reach;
    std::optional<BurstResult> last;
    std::uint64_t session = 0;
    // Sent and answered since the peer's latest count of the session.
    std::uint32_t sent = 0;
    std::uint32_t answered = 0;
    std::uint32_t heard = 0;       // the peer's latest count
    std::uint64_t last_round = 0;  // the last round; 0: never
  };
  static void CountWays(Peer* peer, const BurstResult& burst);

  std::vector<Peer> all_;  // by node name
  std::uint64_t round_ = 0;
};

// Judges a peer by two bursts, older first; `reach` gets state, because and counts.
void JudgePeer(const BurstResult& before, const BurstResult& now, PeerReachability* reach);

}  // namespace railhead::reachability

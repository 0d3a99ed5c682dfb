#include "deviceplugin/services/reachability/peer_table.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

namespace railhead::reachability {
namespace {

// Tolerated loss of small packets: one in sixteen. More is a fault in a lossless network.
constexpr std::uint32_t kSmallLoss = 16;

std::uint32_t SmallSent(const BurstResult& burst) {
  return static_cast<std::uint32_t>(burst.answered.size()) * PeerTable::kPerPath;
}

std::uint32_t SmallAnswered(const BurstResult& burst) {
  return std::accumulate(burst.answered.begin(), burst.answered.end(), 0U);
}

bool LosesLittle(std::uint32_t sent, std::uint32_t answered) {
  return (sent - answered) * kSmallLoss <= std::max(sent, kSmallLoss);
}

bool LostItsLarge(const BurstResult& burst) {
  return burst.large_sent && !burst.large_answered;
}

bool LostItsRdma(const BurstResult& burst) {
  return burst.rdma_sent > 0 && burst.rdma_answered == 0;
}

bool IsClean(const BurstResult& burst) {
  return LosesLittle(SmallSent(burst), SmallAnswered(burst)) && !LostItsLarge(burst) && !LostItsRdma(burst);
}

// The paths on which nothing passed in both bursts, while nearly everything passed on all others. 0: none.
std::uint32_t BadPaths(const BurstResult& before, const BurstResult& now) {
  const std::size_t paths = std::min(before.answered.size(), now.answered.size());
  std::uint32_t bad = 0;
  std::uint32_t answered = 0;
  for (std::size_t path = 0; path < paths; ++path) {
    const std::uint32_t both = before.answered[path] + now.answered[path];
    if (both == 0) ++bad;
    answered += both;
  }
  const auto sent = static_cast<std::uint32_t>(paths - bad) * 2 * PeerTable::kPerPath;
  return LosesLittle(sent, answered) ? bad : 0;
}

std::string Percent(double part) {
  std::array<char, 16> text{};
  (void)std::snprintf(text.data(), text.size(), "%.0f %%", part * 100);
  return text.data();
}

std::string Ways(const PeerReachability& reach) {
  return Percent(reach.lost_out) + " on the way there, " + Percent(reach.lost_in) + " on the way back";
}

}  // namespace

void JudgePeer(const BurstResult& before, const BurstResult& now, PeerReachability* reach) {
  const std::uint32_t sent = SmallSent(before) + SmallSent(now);
  const std::uint32_t answered = SmallAnswered(before) + SmallAnswered(now);
  const bool anything = answered > 0 || before.all_answered + now.all_answered > 0;
  if (!anything && now.peer_was_heard) {
    reach->state = PeerState::kOneWay;
    reach->because = "its probes arrive here, but it does not receive ours";
  } else if (!anything) {
    reach->state = PeerState::kSilent;
    reach->because = "no answer, and its probes do not arrive here";
  } else if (const std::uint32_t bad = BadPaths(before, now); bad > 0) {
    reach->state = PeerState::kPaths;
    reach->bad_paths = bad;
    reach->because = "nothing passes from " + std::to_string(bad) + " of " +
                     std::to_string(now.answered.size()) + " source ports: one of several paths is broken";
  } else if (!LosesLittle(sent, answered)) {
    reach->state = PeerState::kLossy;
    reach->because =
        std::to_string(sent - answered) + " of " + std::to_string(sent) + " lost: " + Ways(*reach);
  } else if (LostItsLarge(before) && LostItsLarge(now)) {
    reach->state = PeerState::kMtu;
    reach->mtu = now.passed;
    reach->because = "packets of the rail's MTU do not arrive; of ";
    reach->because += now.passed ? std::to_string(*now.passed) + " bytes they do" : "1280 bytes neither";
  } else if (LostItsRdma(before) && LostItsRdma(now)) {
    reach->state = PeerState::kNoRdma;
    reach->because = "UDP passes, RDMA does not: none of " +
                     std::to_string(before.rdma_sent + now.rdma_sent) + " datagrams was answered";
  }
}

void PeerTable::SetPeers(const std::map<std::string, IpAddress>& addresses, const std::string& own,
                         Wall::time_point now) {
  std::map<std::string, Peer> known;
  for (Peer& peer : all_) known.emplace(peer.reach.node, std::move(peer));
  all_.clear();
  std::random_device random;
  for (const auto& [node, address] : addresses) {
    if (node == own) continue;
    const auto same = known.find(node);
    if (same != known.end() && same->second.reach.address == address) {
      all_.push_back(std::move(same->second));
      continue;
    }
    Peer& peer = all_.emplace_back();
    peer.reach.node = node;
    peer.reach.address = address;
    peer.reach.state = PeerState::kUnknown;
    peer.reach.since = now;
    peer.session = (std::uint64_t{random()} << 32U) | random();
  }
}

void PeerTable::Forget(Wall::time_point now) {
  for (Peer& peer : all_) {
    peer.last.reset();
    if (peer.reach.state == PeerState::kUnknown) continue;
    PeerReachability unknown;
    unknown.state = PeerState::kUnknown;
    unknown.node = peer.reach.node;
    unknown.address = peer.reach.address;
    unknown.since = now;
    peer.reach = std::move(unknown);
  }
}

void PeerTable::Restore(const std::vector<PeerReachability>& peers) {
  for (Peer& peer : all_) {
    const auto before = std::ranges::find_if(peers, [&](const PeerReachability& old) {
      return old.node == peer.reach.node && old.address == peer.reach.address;
    });
    if (before != peers.end()) peer.reach = *before;
  }
}

std::vector<std::size_t> PeerTable::Choose(std::size_t turns, std::mt19937_64& random) {
  std::vector<std::size_t> order(all_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  std::ranges::stable_sort(
      order, [this](std::size_t a, std::size_t b) { return all_[a].last_round < all_[b].last_round; });
  std::vector<std::size_t> chosen;
  std::size_t suspects = 0;
  std::size_t others = 0;
  ++round_;
  for (const std::size_t i : order) {
    const Peer& peer = all_[i];
    const bool faulty = peer.reach.state != PeerState::kReachable && peer.reach.state != PeerState::kUnknown;
    const bool doubtful = peer.last && !IsClean(*peer.last);
    std::size_t& count = faulty || doubtful ? suspects : others;
    if (count == (faulty || doubtful ? kSuspects : turns)) continue;
    ++count;
    chosen.push_back(i);
    all_[i].last_round = round_;
  }
  return chosen;
}

bool PeerTable::LostLarge(std::size_t peer) const {
  return all_[peer].last && LostItsLarge(*all_[peer].last);
}

// From one of the peer's answers to the next: how many probes it counted, and how many answers came back.
void PeerTable::CountWays(Peer* peer, const BurstResult& burst) {
  peer->sent += burst.sent;
  peer->answered += burst.all_answered;
  if (!burst.heard) return;
  const std::uint32_t before = std::exchange(peer->heard, *burst.heard);
  // A lower count means that the peer has restarted its count.
  const bool comparable = *burst.heard >= before;
  const double heard = comparable ? *burst.heard - before : 0;
  if (comparable && peer->sent > 0 && heard > 0) {
    peer->reach.lost_out = std::clamp(1 - heard / peer->sent, 0.0, 1.0);
    peer->reach.lost_in = std::clamp(1 - peer->answered / heard, 0.0, 1.0);
  }
  peer->sent = 0;
  peer->answered = 0;
}

bool PeerTable::AddResult(std::size_t index, BurstResult burst, Wall::time_point now) {
  Peer& peer = all_[index];
  PeerReachability& reach = peer.reach;
  const PeerState before = reach.state;
  CountWays(&peer, burst);
  const bool first = !peer.last;
  const BurstResult last = peer.last.value_or(BurstResult{});
  reach.paths = static_cast<std::uint32_t>(burst.answered.size());
  reach.sent = SmallSent(last) + SmallSent(burst);
  reach.answered = SmallAnswered(last) + SmallAnswered(burst);
  reach.rdma_sent = last.rdma_sent + burst.rdma_sent;
  reach.rdma_answered = last.rdma_answered + burst.rdma_answered;
  if (burst.rtt) reach.rtt = burst.rtt;
  const bool clean = IsClean(burst);
  if (clean && (first ? before == PeerState::kUnknown : IsClean(last))) {
    reach.state = PeerState::kReachable;
    reach.because.clear();
    reach.bad_paths = 0;
    reach.mtu.reset();
  } else if (!clean && !first && !IsClean(last)) {
    reach.bad_paths = 0;
    reach.mtu.reset();
    JudgePeer(last, burst, &reach);
  }
  if (reach.answered == 0) reach.lost_out = reach.lost_in = 0;
  peer.last = std::move(burst);
  if (reach.state == before) return false;
  reach.since = now;
  return true;
}

std::vector<PeerReachability> PeerTable::Peers() const {
  std::vector<PeerReachability> reaches;
  reaches.reserve(all_.size());
  for (const Peer& peer : all_) reaches.push_back(peer.reach);
  return reaches;
}

}  // namespace railhead::reachability

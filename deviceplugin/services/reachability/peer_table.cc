#include "deviceplugin/services/reachability/peer_table.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

namespace railhead::reachability {
namespace {

// Of a visit's small packets, in sixteenths: more is no accident on a network without loss.
constexpr std::uint32_t kSmallLoss = 16;

std::uint32_t SmallSent(const Visit& visit) {
  return static_cast<std::uint32_t>(visit.answered.size()) * PeerTable::kPerPath;
}

std::uint32_t SmallAnswered(const Visit& visit) {
  return std::accumulate(visit.answered.begin(), visit.answered.end(), 0U);
}

bool LosesLittle(std::uint32_t sent, std::uint32_t answered) {
  return (sent - answered) * kSmallLoss <= std::max(sent, kSmallLoss);
}

bool LostItsLarge(const Visit& visit) {
  return visit.large_sent && !visit.large_answered;
}

bool LostItsRdma(const Visit& visit) {
  return visit.rdma_sent > 0 && visit.rdma_answered == 0;
}

bool IsClean(const Visit& visit) {
  return LosesLittle(SmallSent(visit), SmallAnswered(visit)) && !LostItsLarge(visit) && !LostItsRdma(visit);
}

// Paths on which nothing passed in both visits, though on all others nearly everything did; 0: it is not so.
std::uint32_t BadPaths(const Visit& before, const Visit& now) {
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

std::string Ways(const PeerReach& reach) {
  return Percent(reach.lost_out) + " on the way there, " + Percent(reach.lost_in) + " on the way back";
}

}  // namespace

void JudgePeer(const Visit& before, const Visit& now, PeerReach* reach) {
  const std::uint32_t sent = SmallSent(before) + SmallSent(now);
  const std::uint32_t answered = SmallAnswered(before) + SmallAnswered(now);
  const bool anything = answered > 0 || before.all_answered + now.all_answered > 0;
  if (!anything && now.peer_was_heard) {
    reach->state = PeerState::kOneWay;
    reach->because = "it is heard, but what is sent to it does not arrive";
  } else if (!anything) {
    reach->state = PeerState::kSilent;
    reach->because = "no answer, and it is not heard";
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

void PeerTable::SetPeers(const std::map<std::string, IpAddress>& stations, const std::string& own,
                         Wall::time_point now) {
  std::map<std::string, Peer> known;
  for (Peer& peer : all_) known.emplace(peer.reach.node, std::move(peer));
  all_.clear();
  std::random_device random;
  for (const auto& [node, address] : stations) {
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
    PeerReach unknown;
    unknown.state = PeerState::kUnknown;
    unknown.node = peer.reach.node;
    unknown.address = peer.reach.address;
    unknown.since = now;
    peer.reach = std::move(unknown);
  }
}

void PeerTable::Restore(const std::vector<PeerReach>& peers) {
  for (Peer& peer : all_) {
    const auto before = std::ranges::find_if(peers, [&](const PeerReach& old) {
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
      order, [this](std::size_t a, std::size_t b) { return all_[a].visited < all_[b].visited; });
  std::vector<std::size_t> chosen;
  std::size_t suspects = 0;
  std::size_t others = 0;
  ++round_;
  for (const std::size_t i : order) {
    const Peer& peer = all_[i];
    const bool ill = peer.reach.state != PeerState::kReachable && peer.reach.state != PeerState::kUnknown;
    const bool doubtful = peer.last && !IsClean(*peer.last);
    std::size_t& count = ill || doubtful ? suspects : others;
    if (count == (ill || doubtful ? kSuspects : turns)) continue;
    ++count;
    chosen.push_back(i);
    all_[i].visited = round_;
  }
  return chosen;
}

bool PeerTable::LostLarge(std::size_t peer) const {
  return all_[peer].last && LostItsLarge(*all_[peer].last);
}

// From one of its answers to the next: what it counted of what was sent, and what came back of that.
void PeerTable::CountWays(Peer* peer, const Visit& visit) {
  peer->sent += visit.sent;
  peer->answered += visit.all_answered;
  if (!visit.heard) return;
  const std::uint32_t before = std::exchange(peer->heard, *visit.heard);
  // It began to count anew.
  const bool comparable = *visit.heard >= before;
  const double heard = comparable ? *visit.heard - before : 0;
  if (comparable && peer->sent > 0 && heard > 0) {
    peer->reach.lost_out = std::clamp(1 - heard / peer->sent, 0.0, 1.0);
    peer->reach.lost_in = std::clamp(1 - peer->answered / heard, 0.0, 1.0);
  }
  peer->sent = 0;
  peer->answered = 0;
}

bool PeerTable::Take(std::size_t index, Visit visit, Wall::time_point now) {
  Peer& peer = all_[index];
  PeerReach& reach = peer.reach;
  const PeerState before = reach.state;
  CountWays(&peer, visit);
  const bool first = !peer.last;
  const Visit last = peer.last.value_or(Visit{});
  reach.paths = static_cast<std::uint32_t>(visit.answered.size());
  reach.sent = SmallSent(last) + SmallSent(visit);
  reach.answered = SmallAnswered(last) + SmallAnswered(visit);
  reach.rdma_sent = last.rdma_sent + visit.rdma_sent;
  reach.rdma_answered = last.rdma_answered + visit.rdma_answered;
  if (visit.rtt) reach.rtt = visit.rtt;
  const bool clean = IsClean(visit);
  if (clean && (first ? before == PeerState::kUnknown : IsClean(last))) {
    reach.state = PeerState::kReachable;
    reach.because.clear();
    reach.bad_paths = 0;
    reach.mtu.reset();
  } else if (!clean && !first && !IsClean(last)) {
    reach.bad_paths = 0;
    reach.mtu.reset();
    JudgePeer(last, visit, &reach);
  }
  if (reach.answered == 0) reach.lost_out = reach.lost_in = 0;
  peer.last = std::move(visit);
  if (reach.state == before) return false;
  reach.since = now;
  return true;
}

std::vector<PeerReach> PeerTable::Reaches() const {
  std::vector<PeerReach> reaches;
  reaches.reserve(all_.size());
  for (const Peer& peer : all_) reaches.push_back(peer.reach);
  return reaches;
}

}  // namespace railhead::reachability

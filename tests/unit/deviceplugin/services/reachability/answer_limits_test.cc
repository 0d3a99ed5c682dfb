// Who is answered how often: for any interleaving of senders and any clock.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "deviceplugin/services/reachability/echo_server.h"

namespace railhead::testing {
namespace {

using Clock = reachability::AnswerLimits::Clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kOfPeer = 3;
constexpr int kOfOthers = 20;
constexpr std::uint32_t kSenders = 80;  // the first ones may be peers
constexpr std::uint32_t kMayBePeers = 6;

IpAddress Sender(std::uint32_t number) {
  return IpAddress::V4(0x0a640000U + number);
}

struct Event {
  Clock::time_point time;
  std::uint32_t sender = 0;
  std::optional<std::set<IpAddress>> peers;  // they are these from now on; nobody sends
};

// `steps`: milliseconds from one event to the next. The first one names all peers.
std::vector<Event> Events(const rc::Gen<int>& steps, bool peers_change) {
  const auto senders =
      rc::gen::weightedOneOf<std::uint32_t>({{2, rc::gen::inRange<std::uint32_t>(0, kMayBePeers)},
                                             {3, rc::gen::inRange<std::uint32_t>(0, kSenders)}});
  const auto count = *rc::gen::inRange<std::size_t>(1, 600);
  std::vector<Event> events(count);
  Clock::time_point now;
  for (Event& event : events) {
    now += milliseconds(*steps);
    event.time = now;
    event.sender = *senders;
    if (!peers_change || *rc::gen::inRange(0, 40) != 0) continue;
    event.peers.emplace();
    for (std::uint32_t peer = 0; peer < kMayBePeers; ++peer)
      if (*rc::gen::arbitrary<bool>()) event.peers->insert(Sender(peer));
  }
  events.front().peers.emplace();
  for (std::uint32_t peer = 0; peer < kMayBePeers; ++peer) events.front().peers->insert(Sender(peer));
  return events;
}

rc::Gen<int> Forward() {
  return rc::gen::weightedOneOf<int>({{8, rc::gen::inRange(0, 20)}, {1, rc::gen::inRange(0, 7'000)}});
}
rc::Gen<int> Anyhow() {
  return rc::gen::weightedOneOf<int>({{8, rc::gen::inRange(-20, 40)}, {1, rc::gen::inRange(-7'000, 7'000)}});
}

// The same peer on a rail where nobody else sends.
TEST(AnswerLimitsTest, NoPeerIsLimitedByAnotherSender) {
  EXPECT_TRUE(rc::check([] {
    const auto events = Events(Anyhow(), true);
    reachability::AnswerLimits limits(kOfPeer, kOfOthers);
    std::map<std::uint32_t, reachability::AnswerLimits> alone;
    for (std::uint32_t peer = 0; peer < kMayBePeers; ++peer)
      alone.emplace(peer, reachability::AnswerLimits(kOfPeer, kOfOthers));
    for (const Event& event : events) {
      if (event.peers) {
        limits.SetPeers(*event.peers);
        for (auto& [peer, its] : alone) its.SetPeers(*event.peers);
        continue;
      }
      const bool may = limits.May(Sender(event.sender), event.time);
      if (!limits.IsPeer(Sender(event.sender))) continue;
      RC_ASSERT(may == alone.at(event.sender).May(Sender(event.sender), event.time));
    }
  }));
}

// In any span of time, which at most two of the seconds that are counted share.
TEST(AnswerLimitsTest, NobodyGetsMoreThanHisShare) {
  EXPECT_TRUE(rc::check([] {
    const auto events = Events(Forward(), false);
    reachability::AnswerLimits limits(kOfPeer, kOfOthers);
    std::vector<std::pair<Clock::time_point, std::uint32_t>> to_peers;
    std::vector<std::pair<Clock::time_point, std::uint32_t>> to_others;
    for (const Event& event : events) {
      if (event.peers) {
        limits.SetPeers(*event.peers);
        continue;
      }
      if (!limits.May(Sender(event.sender), event.time)) continue;
      (limits.IsPeer(Sender(event.sender)) ? to_peers : to_others).emplace_back(event.time, event.sender);
    }
    for (std::size_t first = 0; first < to_others.size(); ++first) {
      int in_second = 0;
      std::set<std::uint32_t> others;
      for (std::size_t i = first; i < to_others.size(); ++i) {
        const auto passed = to_others[i].first - to_others[first].first;
        if (passed < seconds(1)) ++in_second;
        if (passed < reachability::AnswerLimits::kOthersTime) others.insert(to_others[i].second);
      }
      RC_ASSERT(in_second <= 2 * kOfOthers);
      RC_ASSERT(others.size() <= 2 * reachability::AnswerLimits::kOthers);
    }
    for (std::size_t first = 0; first < to_peers.size(); ++first) {
      const auto same = [&](const auto& one) {
        return one.second == to_peers[first].second && one.first - to_peers[first].first < seconds(1);
      };
      RC_ASSERT(std::count_if(to_peers.begin() + static_cast<std::ptrdiff_t>(first), to_peers.end(), same) <=
                2 * kOfPeer);
    }
  }));
}

TEST(AnswerLimitsTest, WhoKeepsToHisShareIsAnswered) {
  reachability::AnswerLimits limits(kOfPeer, kOfOthers);
  limits.SetPeers({Sender(0)});
  Clock::time_point now;
  int others = 0;
  for (int second = 0; second < 20; ++second) {
    for (int i = 0; i < kOfPeer; ++i) EXPECT_TRUE(limits.May(Sender(0), now));
    EXPECT_FALSE(limits.May(Sender(0), now));
    for (std::uint32_t i = 1; i <= reachability::AnswerLimits::kOthers; ++i)
      others += limits.May(Sender(i), now) ? 1 : 0;
    now += seconds(1);
  }
  EXPECT_EQ(others, 20 * kOfOthers);
}

}  // namespace
}  // namespace railhead::testing

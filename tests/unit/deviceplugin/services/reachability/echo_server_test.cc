// What endpoints send each other, and which senders get an answer.
#include "deviceplugin/services/reachability/echo_server.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "deviceplugin/services/reachability/echo_request.h"
#include "deviceplugin/services/reachability/probe_message.h"
#include "deviceplugin/services/reachability/send_probes.h"
#include "deviceplugin/services/reachability/udp_socket.h"
#include "netns/ns/netns.h"
#include "tests/support/eventually.h"
#include "tests/support/rapidcheck.h"
#include "tests/support/service/running.h"

namespace railhead::testing {
namespace {

using Clock = reachability::AnswerLimits::Clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// How often each sender gets an answer, for any interleaving of senders and any clock.

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
  std::optional<std::set<IpAddress>> peers;  // the peers from now on; nothing is sent
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
      const bool may = limits.Allow(Sender(event.sender), event.time);
      if (!limits.IsPeer(Sender(event.sender))) continue;
      RC_ASSERT(may == alone.at(event.sender).Allow(Sender(event.sender), event.time));
    }
  }));
}

// In any span of time. It overlaps at most two of the counted seconds.
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
      if (!limits.Allow(Sender(event.sender), event.time)) continue;
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
    for (int i = 0; i < kOfPeer; ++i) EXPECT_TRUE(limits.Allow(Sender(0), now));
    EXPECT_FALSE(limits.Allow(Sender(0), now));
    for (std::uint32_t i = 1; i <= reachability::AnswerLimits::kOthers; ++i)
      others += limits.Allow(Sender(i), now) ? 1 : 0;
    now += seconds(1);
  }
  EXPECT_EQ(others, 20 * kOfOthers);
}

// Forged probes and answers, against endpoints that share keys. On the loopback interface, where each address
// of 127.0.0.0/8 is a host.

constexpr std::uint64_t kSession = 7;
const IpAddress kEndpoint = *IpAddress::Parse("127.0.0.1");
const IpAddress kPeer = *IpAddress::Parse("127.0.0.2");
const IpAddress kPod = *IpAddress::Parse("127.0.0.9");

using Keys = std::shared_ptr<const SharedKeys>;
Keys KeysOf(const std::string& text) {
  auto keys = SharedKeys::Parse(text, "keys");
  EXPECT_TRUE(keys);
  return std::make_shared<const SharedKeys>(*std::move(keys));
}
const std::string kFirst = "00112233445566778899aabbccddeeff\n";
const std::string kSecond = "ffeeddccbbaa99887766554433221100\n";

UniqueFd Open(const IpAddress& own) {
  const auto ns = NetNs::Current();
  EXPECT_TRUE(ns);
  auto fd = reachability::OpenUdp(*ns, "lo", {own, 0}, 0);
  EXPECT_TRUE(fd) << Describe(fd.error());
  return *std::move(fd);
}

// Answers every probe with a forged count, signed with `with`, or unsigned if that is null.
class Forger {
 public:
  explicit Forger(const SharedKeys* with)
      : socket_(Open(kEndpoint)), with_(with), thread_([this] { Loop(); }) {}
  ~Forger() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] reachability::UdpEnd end() const { return reachability::OwnEnd(socket_.get()); }
  [[nodiscard]] int answered() const { return answered_; }

 private:
  void Loop() {
    while (!stop_) {
      pollfd waiting{socket_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 20) <= 0) continue;
      std::array<std::uint8_t, 2048> bytes{};
      reachability::UdpSocketAddress from;
      const ssize_t size = ::recvfrom(socket_.get(), bytes.data(), bytes.size(), 0, from.data(), &from.size);
      if (size < 0) continue;
      auto message = reachability::ParseProbe({bytes.data(), static_cast<std::size_t>(size)});
      if (!message) continue;
      message->answer = true;
      message->heard = 1'000'000;
      const auto answer = with_ == nullptr
                              ? BytesOf(*message)
                              : SignedBytesOf(*message, *with_, {kEndpoint, from.End()->address});
      (void)::sendto(socket_.get(), answer.data(), answer.size(), 0, from.data(), from.size);
      ++answered_;
    }
  }

  UniqueFd socket_;
  const SharedKeys* with_;
  std::atomic<bool> stop_{false};
  std::atomic<int> answered_{0};
  std::thread thread_;
};

class SignedProbeTest : public ::testing::Test {
 protected:
  // Whether a probe to `to` from `own` is answered, in a way that counts.
  static bool IsAnswered(const IpAddress& own, const reachability::UdpEnd& to, const SharedKeys* keys,
                         milliseconds limit = milliseconds(300)) {
    const UniqueFd socket = Open(own);
    std::vector<reachability::Probe> probes(1);
    probes[0].socket = socket.get();
    probes[0].to = to;
    probes[0].session = kSession;
    const auto fired = SendProbes(&probes, limit, keys);
    EXPECT_TRUE(fired);
    return probes[0].rtt.has_value();
  }
  // An endpoint that has `keys`, and knows kPeer.
  reachability::UdpEnd Serve(const Keys& keys) {
    echo_ = RunService<reachability::EchoServer>();
    UniqueFd socket = Open(kEndpoint);
    const reachability::UdpEnd end = reachability::OwnEnd(socket.get());
    echo_->SetKeys(keys);
    echo_->Serve("rail0", {{*IpPrefix::Parse("127.0.0.0/8")}, {kPeer}, 1000}, std::move(socket));
    return end;
  }
  [[nodiscard]] bool IsHeard() const { return echo_->LastProbeFrom("rail0", kPeer).has_value(); }

  Running<reachability::EchoServer> echo_;
  static constexpr milliseconds kLong{20'000};  // for what comes
};

// A host forges answers for an endpoint that is gone.
TEST_F(SignedProbeTest, ForgedAnswersDoNotCount) {
  const Keys keys = KeysOf(kFirst);
  const Keys others = KeysOf(kSecond);
  for (const SharedKeys* with : {static_cast<const SharedKeys*>(nullptr), others.get()}) {
    const Forger forger(with);
    EXPECT_FALSE(IsAnswered(kPeer, forger.end(), keys.get()));
    EXPECT_TRUE(Eventually([&] { return forger.answered() > 0; })) << "its thread may be behind";
    if (with == nullptr) {
      EXPECT_TRUE(IsAnswered(kPeer, forger.end(), nullptr, kLong)) << "without keys nobody can tell";
    }
  }
}

// A host sends probes in the name of an endpoint.
TEST_F(SignedProbeTest, ForgedProbesAreNeitherAnsweredNorCounted) {
  const Keys keys = KeysOf(kFirst);
  const reachability::UdpEnd endpoint = Serve(keys);
  EXPECT_FALSE(IsAnswered(kPeer, endpoint, nullptr));
  EXPECT_FALSE(IsAnswered(kPeer, endpoint, KeysOf(kSecond).get()));
  EXPECT_FALSE(IsHeard());
  EXPECT_TRUE(IsAnswered(kPeer, endpoint, keys.get(), kLong));
  EXPECT_TRUE(IsHeard());
}

// A pod sees the signed probes that its node sends from the pod's namespace.
TEST_F(SignedProbeTest, WhatIsSignedForOneAddressIsNothingFromAnother) {
  const Keys keys = KeysOf(kFirst);
  const reachability::UdpEnd endpoint = Serve(keys);
  const auto seen = reachability::SignedBytesOf({false, kSession, 99, 0, 0}, *keys, {kPod, kEndpoint});
  const UniqueFd socket = Open(kPeer);
  const reachability::UdpSocketAddress to(endpoint);
  ASSERT_GT(::sendto(socket.get(), seen.data(), seen.size(), 0, to.data(), to.size), 0);
  // Answered in order: after this one the other was judged.
  EXPECT_TRUE(IsAnswered(kPod, endpoint, keys.get(), kLong));
  EXPECT_FALSE(IsHeard());
}

// Operators add, change and remove keys without a lost probe, whichever node is first.
TEST_F(SignedProbeTest, EachStepOfAChangeKeepsAllNodesReachable) {
  const std::vector<Keys> steps = {nullptr,
                                   KeysOf(kFirst + "unsigned\n"),
                                   KeysOf(kFirst),
                                   KeysOf(kFirst + kSecond),
                                   KeysOf(kSecond + kFirst),
                                   KeysOf(kSecond),
                                   KeysOf(kSecond + "unsigned\n"),
                                   nullptr};
  for (std::size_t step = 0; step + 1 < steps.size(); ++step) {
    for (const auto& [asks, answers] : {std::pair(step, step + 1), {step + 1, step}, {step, step}}) {
      const reachability::UdpEnd endpoint = Serve(steps[answers]);
      EXPECT_TRUE(IsAnswered(kPeer, endpoint, steps[asks].get(), kLong)) << asks << " asks " << answers;
    }
  }
}

TEST_F(SignedProbeTest, AnAnswerIsNoLongerThanItsProbe) {
  const Keys keys = KeysOf(kFirst + "unsigned\n");
  const reachability::UdpEnd endpoint = Serve(keys);
  const UniqueFd socket = Open(kPeer);
  const reachability::UdpSocketAddress to(endpoint);
  for (const auto& probe :
       {reachability::BytesOf({false, kSession, 1, 0, 0}),
        reachability::SignedBytesOf({false, kSession, 2, 0, 0}, *keys, {kPeer, kEndpoint})}) {
    ASSERT_GT(::sendto(socket.get(), probe.data(), probe.size(), 0, to.data(), to.size), 0);
    pollfd waiting{socket.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 20'000), 1);
    std::array<std::uint8_t, 2048> bytes{};
    EXPECT_EQ(::recv(socket.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(probe.size()));
  }
}

TEST(ProbeMessageTest, ComesBackAsItWas) {
  EXPECT_TRUE(rc::check([](bool answer, std::uint64_t session, std::uint64_t token) {
    const reachability::ProbeMessage message{answer, session, token, static_cast<std::uint32_t>(token >> 7U),
                                             static_cast<std::uint32_t>(session >> 9U) & 0xffffffU};
    const auto size = *rc::gen::inRange<std::size_t>(0, 9000);
    const auto bytes = BytesOf(message, size);
    RC_ASSERT(bytes.size() == std::max(size, reachability::kProbeHeader));
    RC_ASSERT(reachability::ParseProbe(bytes) == std::optional(message));
    RC_ASSERT(!reachability::ParseProbe(std::span(bytes).first(reachability::kProbeHeader - 1)));
  }));
}

// An earlier version has zeros there.
TEST(ProbeMessageTest, HasTheQueuePairInItsLastThreeBytes) {
  const auto bytes = reachability::BytesOf({true, 1, 2, 3, 0x123456});
  EXPECT_EQ((std::vector<std::uint8_t>(bytes.begin() + 28, bytes.end())),
            (std::vector<std::uint8_t>{0, 0x12, 0x34, 0x56}));
}

TEST(ProbeMessageTest, TakesAnyBytes) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& bytes) {
    const auto message = reachability::ParseProbe(bytes);
    RC_ASSERT(!message || bytes.size() >= reachability::kProbeHeader);
  }));
}

TEST(ProbeMessageTest, OtherVersionsAndKindsAreNone) {
  auto bytes = reachability::BytesOf({});
  bytes[4] = 2;
  EXPECT_FALSE(reachability::ParseProbe(bytes));
  bytes = reachability::BytesOf({});
  bytes[5] = 3;
  EXPECT_FALSE(reachability::ParseProbe(bytes));
}

// RFC 792, with the checksum by hand: 0800 + 1234 + 0001 = 1a35.
TEST(EchoRequestTest, AsBytes) {
  EXPECT_EQ(reachability::EchoRequest(true, 0x1234, 1),
            (std::vector<std::uint8_t>{8, 0, 0xe5, 0xca, 0x12, 0x34, 0, 1}));
  EXPECT_EQ(reachability::EchoRequest(false, 0x1234, 1),
            (std::vector<std::uint8_t>{128, 0, 0, 0, 0x12, 0x34, 0, 1}));
}

TEST(EchoRequestTest, IsAnsweredByItsOwnReplyAlone) {
  std::vector<std::uint8_t> v4 = {0x46, 0, 0, 32, 0, 0, 0, 0, 64, 1, 0, 0, 10,   0,    0, 1,
                                  10,   0, 0, 2,  1, 1, 1, 1, 0,  0, 0, 0, 0x12, 0x34, 0, 1};
  EXPECT_TRUE(reachability::AnswersRequest(v4, true, 0x1234)) << "behind IP options";
  EXPECT_FALSE(reachability::AnswersRequest(v4, true, 0x1235));
  EXPECT_FALSE(reachability::AnswersRequest(std::span(v4).first(v4.size() - 1), true, 0x1234));
  v4[24] = 8;
  EXPECT_FALSE(reachability::AnswersRequest(v4, true, 0x1234)) << "a request";
  const std::vector<std::uint8_t> v6 = {129, 0, 0, 0, 0x12, 0x34, 0, 1};
  EXPECT_TRUE(reachability::AnswersRequest(v6, false, 0x1234));
  EXPECT_FALSE(reachability::AnswersRequest(v6, true, 0x1234));
}

TEST(EchoRequestTest, TakesAnyBytes) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& bytes, bool v4) {
    RC_ASSERT(!reachability::AnswersRequest(bytes, v4, 7) || bytes.size() >= 8);
  }));
}

}  // namespace
}  // namespace railhead::testing

// Probes and answers that somebody forges, against stations that share keys: on the loopback interface, where
// each address of 127.0.0.0/8 is a host.
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <thread>

#include "deviceplugin/services/reachability/echo_server.h"
#include "deviceplugin/services/reachability/udp_socket.h"
#include "netns/ns/netns.h"

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kSession = 7;
const IpAddress kStation = *IpAddress::Parse("127.0.0.1");
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

// Answers each probe as whoever has no key would: as it is told to.
class Forger {
 public:
  explicit Forger(const SharedKeys* with)
      : socket_(Open(kStation)), with_(with), thread_([this] { Loop(); }) {}
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
      const auto answer = with_ == nullptr ? BytesOf(*message)
                                           : SignedBytesOf(*message, *with_, {kStation, from.End()->address});
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
    std::vector<reachability::Shot> shots(1);
    shots[0].socket = socket.get();
    shots[0].to = to;
    shots[0].session = kSession;
    const auto fired = Fire(&shots, limit, keys);
    EXPECT_TRUE(fired);
    return shots[0].rtt.has_value();
  }
  // A station that has `keys`, and knows kPeer.
  reachability::UdpEnd Serve(const Keys& keys) {
    echo_ = *reachability::EchoServer::Start();
    UniqueFd socket = Open(kStation);
    const reachability::UdpEnd end = reachability::OwnEnd(socket.get());
    echo_->SetKeys(keys);
    echo_->Serve("rail0", {*IpPrefix::Parse("127.0.0.0/8"), {kPeer}, 1000}, std::move(socket));
    return end;
  }
  [[nodiscard]] bool IsHeard() const { return echo_->Heard("rail0", kPeer).has_value(); }

  std::unique_ptr<reachability::EchoServer> echo_;
  static constexpr milliseconds kLong{20'000};  // for what comes
};

// Who forges answers for a station that is gone.
TEST_F(SignedProbeTest, ForgedAnswersDoNotCount) {
  const Keys keys = KeysOf(kFirst);
  const Keys others = KeysOf(kSecond);
  for (const SharedKeys* with : {static_cast<const SharedKeys*>(nullptr), others.get()}) {
    const Forger forger(with);
    EXPECT_FALSE(IsAnswered(kPeer, forger.end(), keys.get()));
    EXPECT_GT(forger.answered(), 0);
    if (with == nullptr) {
      EXPECT_TRUE(IsAnswered(kPeer, forger.end(), nullptr, kLong)) << "without keys nobody can tell";
    }
  }
}

// Who sends probes in the name of a station.
TEST_F(SignedProbeTest, ForgedProbesAreNeitherAnsweredNorCounted) {
  const Keys keys = KeysOf(kFirst);
  const reachability::UdpEnd station = Serve(keys);
  EXPECT_FALSE(IsAnswered(kPeer, station, nullptr));
  EXPECT_FALSE(IsAnswered(kPeer, station, KeysOf(kSecond).get()));
  EXPECT_FALSE(IsHeard());
  EXPECT_TRUE(IsAnswered(kPeer, station, keys.get(), kLong));
  EXPECT_TRUE(IsHeard());
}

// A pod sees the signed probes that its node sends from the pod's namespace.
TEST_F(SignedProbeTest, WhatIsSignedForOneAddressIsNothingFromAnother) {
  const Keys keys = KeysOf(kFirst);
  const reachability::UdpEnd station = Serve(keys);
  const auto seen = reachability::SignedBytesOf({false, kSession, 99, 0, 0}, *keys, {kPod, kStation});
  const UniqueFd socket = Open(kPeer);
  const reachability::UdpSocketAddress to(station);
  ASSERT_GT(::sendto(socket.get(), seen.data(), seen.size(), 0, to.data(), to.size), 0);
  // Answered in order: after this one the other was judged.
  EXPECT_TRUE(IsAnswered(kPod, station, keys.get(), kLong));
  EXPECT_FALSE(IsHeard());
}

// Keys are brought in, changed and taken out without a probe that is lost, whichever node is first.
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
      const reachability::UdpEnd station = Serve(steps[answers]);
      EXPECT_TRUE(IsAnswered(kPeer, station, steps[asks].get(), kLong)) << asks << " asks " << answers;
    }
  }
}

TEST_F(SignedProbeTest, AnAnswerIsNoLongerThanItsProbe) {
  const Keys keys = KeysOf(kFirst + "unsigned\n");
  const reachability::UdpEnd station = Serve(keys);
  const UniqueFd socket = Open(kPeer);
  const reachability::UdpSocketAddress to(station);
  for (const auto& probe :
       {reachability::BytesOf({false, kSession, 1, 0, 0}),
        reachability::SignedBytesOf({false, kSession, 2, 0, 0}, *keys, {kPeer, kStation})}) {
    ASSERT_GT(::sendto(socket.get(), probe.data(), probe.size(), 0, to.data(), to.size), 0);
    pollfd waiting{socket.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 20'000), 1);
    std::array<std::uint8_t, 2048> bytes{};
    EXPECT_EQ(::recv(socket.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(probe.size()));
  }
}

}  // namespace
}  // namespace railhead::testing

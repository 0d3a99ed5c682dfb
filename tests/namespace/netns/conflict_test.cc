// Address conflict detection on the wire: two namespaces with veth pairs between them.
#include "netns/packet/conflict.h"

#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <random>
#include <thread>

#include "netns/linux_kernel.h"
#include "netns/packet/announce.h"
#include "netns/packet/frames.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

using Frame = std::vector<std::uint8_t>;
using std::chrono::milliseconds;

// Far longer than any answer takes. A test that waits for the full time has failed.
constexpr milliseconds kUntilFound{6'000};
// How long tests without a conflict wait.
constexpr milliseconds kShort{250};

// Sends the same frames over and over while it lives.
class Chatter {
 public:
  Chatter(const NetNs& ns, int link, std::vector<Frame> frames) : frames_(std::move(frames)) {
    Must(OpenSocketsIn(ns, [&]() -> Result<void> {
      fd_.Reset(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
      if (!fd_.valid()) return FailSys(errno, "opening a packet socket");
      return {};
    }));
    thread_ = std::thread([this, link] {
      sockaddr_ll to{};
      to.sll_family = AF_PACKET;
      to.sll_ifindex = link;
      while (!stop_) {
        for (const Frame& frame : frames_) {
          (void)sendto(fd_.get(), frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                       sizeof(to));
        }
        ++rounds_;
        std::this_thread::yield();
      }
    });
  }
  ~Chatter() {
    stop_ = true;
    thread_.join();
  }
  Chatter(const Chatter&) = delete;
  Chatter& operator=(const Chatter&) = delete;
  [[nodiscard]] int rounds() const { return rounds_; }

 private:
  std::vector<Frame> frames_;
  UniqueFd fd_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> rounds_ = 0;
  std::thread thread_;
};

class ConflictTest : public ::testing::Test {
 protected:
  ConflictTest() { Connect("net1", "far1"); }

  struct Wire {
    Link near;
    Link far;
  };
  void Connect(const std::string& near, const std::string& far) {
    const int index = AddVeth(pod_, near, peer_, far);
    const int far_index = GetLink(*peer_route_, far).index;
    BringUp(*pod_route_, index);
    BringUp(*peer_route_, far_index);
    if (!Must(pod_route_->WaitCarrier(index, NetDeadline())) ||
        !Must(peer_route_->WaitCarrier(far_index, NetDeadline()))) {
      Die(Error{ErrorCode::kTimeout, "the veth pair did not come up", "", 0});
    }
    wires_.push_back({GetLink(*pod_route_, index), GetLink(*peer_route_, far_index)});
  }
  [[nodiscard]] ProbeTarget Target(const IpAddress& address, std::size_t wire = 0) const {
    return {wires_[wire].near.index, wires_[wire].near.mac, address};
  }
  void GivePeer(const std::string& prefix, std::size_t wire = 0) {
    Must(peer_route_->AddAddress(wires_[wire].far.index, *IpPrefix::Parse(prefix)));
  }

  NetNs pod_ = MakeNetns();
  NetNs peer_ = MakeNetns();
  std::unique_ptr<RouteApi> pod_route_ = OpenRoute(pod_);
  std::unique_ptr<RouteApi> peer_route_ = OpenRoute(peer_);
  std::vector<Wire> wires_;
  const IpAddress v4_ = *IpAddress::Parse("10.100.0.7");
  const IpAddress v6_ = *IpAddress::Parse("fd00:100::7");
  const MacAddress unknown_mac_ = *MacAddress::Parse("02:00:00:00:00:99");
};

TEST_F(ConflictTest, NobodyHasThem) {
  GivePeer("10.100.0.8/24");
  GivePeer("fd00:100::8/64");
  EXPECT_EQ(Must(ProbeAddresses(pod_, {Target(v4_), Target(v6_)}, kShort)), std::vector<AddressConflict>{});
}

TEST_F(ConflictTest, ANeighbourHasTheIpv4Address) {
  GivePeer("10.100.0.7/24");
  const auto found = Must(ProbeAddresses(pod_, {Target(v4_)}, kUntilFound));
  EXPECT_EQ(found, (std::vector<AddressConflict>{{Target(v4_), wires_[0].far.mac, wires_[0].far.mac}}));
}

TEST_F(ConflictTest, ANeighbourHasTheIpv6Address) {
  GivePeer("fd00:100::7/64");
  const auto found = Must(ProbeAddresses(pod_, {Target(v6_)}, kUntilFound));
  EXPECT_EQ(found, (std::vector<AddressConflict>{{Target(v6_), wires_[0].far.mac, wires_[0].far.mac}}));
}

// Many nodes ask for one router, all at the same time. None takes the others' questions for an answer.
TEST_F(ConflictTest, ARouterThatIsAbsentDoesNotAnswerBecauseOthersAsk) {
  for (const IpAddress& address : {v4_, v6_}) {
    ProbeTarget ours = Target(address);
    ProbeTarget theirs{wires_[0].far.index, wires_[0].far.mac, address, true};
    ours.of_router = true;
    std::vector<AddressConflict> of_peer;
    std::thread other([&] { of_peer = Must(ProbeAddresses(peer_, {theirs}, milliseconds(1500))); });
    const auto of_pod = Must(ProbeAddresses(pod_, {ours}, milliseconds(1500)));
    other.join();
    EXPECT_TRUE(of_pod.empty()) << address.ToString();
    EXPECT_TRUE(of_peer.empty()) << address.ToString();
  }
}

TEST_F(ConflictTest, ARouterAnswersWithoutAnAddressOfOurs) {
  GivePeer("10.100.0.7/24");
  GivePeer("fd00:100::7/64");
  for (const IpAddress& address : {v4_, v6_}) {
    ProbeTarget router = Target(address);
    router.of_router = true;
    const auto found = Must(ProbeAddresses(pod_, {router}, kUntilFound));
    EXPECT_EQ(found, (std::vector<AddressConflict>{{router, wires_[0].far.mac, wires_[0].far.mac}}));
  }
}

// ADD probes when the address is already configured and its own answers are suppressed.
TEST_F(ConflictTest, TheAddressMayBeConfiguredHere) {
  GivePeer("10.100.0.7/24");
  LinkChange silent;
  silent.ipv4 = {{Ipv4Conf::kArpIgnore, 8}};
  Must(pod_route_->ChangeLink(wires_[0].near.index, silent));
  Must(pod_route_->AddAddress(wires_[0].near.index, *IpPrefix::Parse("10.100.0.7/24")));
  EXPECT_EQ(Must(ProbeAddresses(pod_, {Target(v4_)}, kUntilFound)).size(), 1U);
}

TEST_F(ConflictTest, AllTargetsAtOnceEachOnItsOwnLink) {
  Connect("net2", "far2");
  // An address on far2 does not conflict with net1. By default Linux would answer for it on every link.
  LinkChange strict;
  strict.ipv4 = {{Ipv4Conf::kArpIgnore, 1}};
  for (const Wire& wire : wires_) Must(peer_route_->ChangeLink(wire.far.index, strict));
  GivePeer("10.100.0.7/24", 1);
  GivePeer("fd00:100::7/64", 0);
  const std::vector<ProbeTarget> targets = {Target(v4_, 0), Target(v4_, 1), Target(v6_, 0), Target(v6_, 1)};
  const auto found = Must(LinuxKernel(Root()).ProbeAddresses(pod_, targets, milliseconds(1000)));
  EXPECT_EQ(found, (std::vector<AddressConflict>{{targets[1], wires_[1].far.mac, wires_[1].far.mac},
                                                 {targets[2], wires_[0].far.mac, wires_[0].far.mac}}));
}

// The side that hears the other gives way. At least one of the two always does.
TEST_F(ConflictTest, TwoProbeAtTheSameTime) {
  for (const IpAddress& address : {v4_, v6_}) {
    const ProbeTarget theirs{wires_[0].far.index, wires_[0].far.mac, address};
    std::vector<AddressConflict> of_peer;
    std::thread other([&] { of_peer = Must(ProbeAddresses(peer_, {theirs}, milliseconds(1500))); });
    const auto of_pod = Must(ProbeAddresses(pod_, {Target(address)}, milliseconds(1500)));
    other.join();
    EXPECT_GE(of_pod.size() + of_peer.size(), 1U) << address.ToString();
    for (const auto& conflict : of_pod) EXPECT_EQ(conflict.other, wires_[0].far.mac);
    for (const auto& conflict : of_peer) EXPECT_EQ(conflict.other, wires_[0].near.mac);
  }
}

// A sender can write any address into ARP. It cannot forge the frame's source where the NIC refuses that.
TEST_F(ConflictTest, TheFrameTellsWhoSentIt) {
  const MacAddress sender = wires_[0].far.mac;
  Frame frame = GratuitousArp(unknown_mac_, v4_);
  std::copy(sender.bytes.begin(), sender.bytes.end(), frame.begin() + 6);
  const Chatter liar(peer_, wires_[0].far.index, {frame});
  const auto found = Must(ProbeAddresses(pod_, {Target(v4_)}, kUntilFound));
  EXPECT_EQ(found, (std::vector<AddressConflict>{{Target(v4_), unknown_mac_, sender}}));
}

TEST_F(ConflictTest, ReflectedFramesAreNoConflict) {
  const MacAddress own = wires_[0].near.mac;
  const Chatter mirror(peer_, wires_[0].far.index,
                       {ArpProbe(own, v4_), GratuitousArp(own, v4_), NeighbourProbe(own, v6_),
                        UnsolicitedAdvertisement(own, v6_)});
  EXPECT_EQ(Must(ProbeAddresses(pod_, {Target(v4_), Target(v6_)}, kShort)), std::vector<AddressConflict>{});
  EXPECT_GT(mirror.rounds(), 0);
}

TEST_F(ConflictTest, OtherVlansAreOtherNetworks) {
  const auto tagged = [](Frame frame) {
    frame.insert(frame.begin() + 12, {0x81, 0x00, 0x00, 0x05});
    return frame;
  };
  const std::vector<Frame> frames = {GratuitousArp(unknown_mac_, v4_),
                                     UnsolicitedAdvertisement(unknown_mac_, v6_)};
  {
    const Chatter other(peer_, wires_[0].far.index, {tagged(frames[0]), tagged(frames[1])});
    EXPECT_EQ(Must(ProbeAddresses(pod_, {Target(v4_), Target(v6_)}, kShort)), std::vector<AddressConflict>{});
    EXPECT_GT(other.rounds(), 0);
  }
  const Chatter same(peer_, wires_[0].far.index, frames);
  EXPECT_EQ(Must(ProbeAddresses(pod_, {Target(v4_), Target(v6_)}, kUntilFound)).size(), 2U);
}

// Damaged frames of the kinds that pass the socket's filter, in masses.
TEST_F(ConflictTest, GarbageIsNoConflictAndHidesNone) {
  std::mt19937 random(20240607);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same bytes each time
  std::vector<Frame> garbage;
  for (int i = 0; i < 200; ++i) {
    Frame frame = i % 2 == 0 ? GratuitousArp(unknown_mac_, v4_) : UnsolicitedAdvertisement(unknown_mac_, v6_);
    // Damages the ARP header or the ICMPv6 checksum: with another address or length the frame could be valid.
    if (i % 2 == 0) {
      frame[14 + random() % 6] ^= static_cast<std::uint8_t>(1 + random() % 255);
    } else {
      frame[56 + random() % 2] ^= static_cast<std::uint8_t>(1 + random() % 255);
    }
    if (i % 5 == 0) frame.resize(15 + random() % 26);
    garbage.push_back(std::move(frame));
  }
  const Chatter noise(peer_, wires_[0].far.index, garbage);
  EXPECT_EQ(Must(ProbeAddresses(pod_, {Target(v4_), Target(v6_)}, kShort)), std::vector<AddressConflict>{});
  EXPECT_GT(noise.rounds(), 0);
  GivePeer("10.100.0.7/24");
  GivePeer("fd00:100::7/64");
  EXPECT_EQ(Must(ProbeAddresses(pod_, {Target(v4_), Target(v6_)}, kUntilFound)).size(), 2U);
}

TEST_F(ConflictTest, SendsThreeProbesOfEach) {
  Capture arp(peer_, wires_[0].far.index);
  Capture ipv6(peer_, wires_[0].far.index);
  Must(ProbeAddresses(pod_, {Target(v4_), Target(v6_)}, milliseconds(70)));
  // Marks the end of the frames that the test reads.
  Must(Announce(pod_, wires_[0].near.index, wires_[0].near.mac, {v4_, v6_}));
  const auto count = [](Capture& capture, std::uint16_t type, const Frame& wanted, const Frame& last) {
    int seen = 0;
    for (auto frame = capture.Next(type); frame && *frame != last; frame = capture.Next(type)) {
      if (*frame == wanted) ++seen;
    }
    return seen;
  };
  const MacAddress mac = wires_[0].near.mac;
  EXPECT_EQ(count(arp, 0x0806, ArpProbe(mac, v4_), GratuitousArp(mac, v4_)), 3);
  EXPECT_EQ(count(ipv6, 0x86dd, NeighbourProbe(mac, v6_), UnsolicitedAdvertisement(mac, v6_)), 3);
}

TEST_F(ConflictTest, RefusalsSayWhatToDo) {
  EXPECT_EQ(Must(ProbeAddresses(pod_, {}, kShort)), std::vector<AddressConflict>{});
  EXPECT_EQ(Must(ProbeAddresses(pod_, {Target(v4_)}, milliseconds(0))), std::vector<AddressConflict>{});
  for (const char* text : {"0.0.0.0", "224.0.0.1", "::", "ff02::1"}) {
    const auto refused = ProbeAddresses(pod_, {Target(*IpAddress::Parse(text))}, kShort);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  }
  EXPECT_EQ(ProbeAddresses(pod_, {{wires_[0].near.index, {}, v4_}}, kShort).error().code,
            ErrorCode::kInvalid);
  for (const IpAddress& address : {v4_, v6_}) {
    EXPECT_EQ(ProbeAddresses(pod_, {{4242, unknown_mac_, address}}, kShort).error().code,
              ErrorCode::kNotFound);
  }
  LinkChange down;
  down.up = false;
  Must(pod_route_->ChangeLink(wires_[0].near.index, down));
  const auto refused = ProbeAddresses(pod_, {Target(v4_)}, kShort);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().hint, "the interface must be up");
  EXPECT_NE(refused.error().message.find("10.100.0.7"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace railhead::testing

// ARP and neighbour advertisement frames, as bytes and on the wire.
#include "netns/packet/announce.h"

#include <gtest/gtest.h>

#include "netns/linux_kernel.h"
#include "netns/nl/send_gratuitous_arp.h"
#include "netns/packet/frames.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

using Frame = std::vector<std::uint8_t>;

const MacAddress kMac = *MacAddress::Parse("02:11:22:33:44:55");

TEST(Frames, GratuitousArp) {
  const Frame wanted = {
      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 0x08, 0x06,  // Ethernet
      0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x01,                                      // request
      0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 10,   100,  0,    7,                             // sender
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 10,   100,  0,    7,                             // target
  };
  EXPECT_EQ(GratuitousArp(kMac, *IpAddress::Parse("10.100.0.7")), wanted);
}

TEST(Frames, ArpProbeHasNoSender) {
  Frame wanted = GratuitousArp(kMac, *IpAddress::Parse("10.100.0.7"));
  for (std::size_t i = 28; i < 32; ++i) wanted[i] = 0;
  EXPECT_EQ(ArpProbe(kMac, *IpAddress::Parse("10.100.0.7")), wanted);
}

TEST(Frames, UnsolicitedAdvertisement) {
  const Frame wanted = {
      0x33, 0x33, 0x00, 0x00, 0x00, 0x01, 0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 0x86, 0xdd,  // Ethernet
      0x60, 0x00, 0x00, 0x00, 0x00, 0x20, 58,   255,                                       // IPv6
      0xfd, 0x00, 0x01, 0x00, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
      0,    0x07, 0xff, 0x02, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
      0,    0,    0,    0x01, 0x88, 0x00, 0xf1, 0xf6, 0x20, 0x00, 0x00, 0x00,  // advertisement
      0xfd, 0x00, 0x01, 0x00, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
      0,    0x07, 0x02, 0x01, 0x02, 0x11, 0x22, 0x33, 0x44, 0x55,  // option
  };
  EXPECT_EQ(UnsolicitedAdvertisement(kMac, *IpAddress::Parse("fd00:100::7")), wanted);
}

TEST(Frames, NeighbourProbeGoesToTheSolicitedNode) {
  const Frame wanted = {
      0x33, 0x33, 0xff, 0x00, 0x00, 0x07, 0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 0x86, 0xdd,  // Ethernet
      0x60, 0x00, 0x00, 0x00, 0x00, 0x18, 58,   255,                                       // IPv6
      0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
      0xff, 0x02, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0x01, 0xff, 0x00, 0x00, 0x07,
      0x87, 0x00, 0x7c, 0x99, 0x00, 0x00, 0x00, 0x00,  // solicitation
      0xfd, 0x00, 0x01, 0x00, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0x07,
  };
  EXPECT_EQ(NeighbourProbe(kMac, *IpAddress::Parse("fd00:100::7")), wanted);
  EXPECT_EQ(IpAddress::Parse("fd00:100::8:1234:5678")->SolicitedNode(),
            *IpAddress::Parse("ff02::1:ff34:5678"));
}

TEST(Frames, AdvertisementWithoutOverride) {
  const Frame with = UnsolicitedAdvertisement(kMac, *IpAddress::Parse("fd00:100::7"));
  const Frame without = UnsolicitedAdvertisement(kMac, *IpAddress::Parse("fd00:100::7"), false);
  ASSERT_EQ(with.size(), without.size());
  EXPECT_EQ(with[58], 0x20);
  EXPECT_EQ(without[58], 0);
  // Computed by other code than ours, like the one above.
  EXPECT_EQ((without[56] << 8) | without[57], 0x11f7);
}

class AnnounceTest : public ::testing::Test {
 protected:
  AnnounceTest() {
    index_ = AddVeth(pod_, "net1", peer_, "far1");
    auto pod = OpenRoute(pod_);
    auto peer = OpenRoute(peer_);
    far_index_ = GetLink(*peer, "far1").index;
    BringUp(*pod, index_);
    BringUp(*peer, far_index_);
    if (!Must(pod->WaitCarrier(index_, NetDeadline())) ||
        !Must(peer->WaitCarrier(far_index_, NetDeadline()))) {
      Die(Error{ErrorCode::kTimeout, "the veth pair did not come up", "", 0});
    }
  }
  NetNs pod_ = MakeNetns();
  NetNs peer_ = MakeNetns();
  int index_ = 0;
  int far_index_ = 0;
};

TEST_F(AnnounceTest, ArrivesAtThePeer) {
  const auto v4 = *IpAddress::Parse("10.100.0.7");
  const auto v6 = *IpAddress::Parse("fd00:100::7");
  Capture arp(peer_, far_index_);
  Capture ipv6(peer_, far_index_);
  Must(Announce(pod_, index_, kMac, {v4, v6}));
  EXPECT_EQ(arp.Next(0x0806), GratuitousArp(kMac, v4));
  // The kernels of both ends speak IPv6 too.
  const Frame wanted = UnsolicitedAdvertisement(kMac, v6);
  std::optional<Frame> seen;
  do {
    seen = ipv6.Next(0x86dd);
  } while (seen && *seen != wanted);
  EXPECT_EQ(seen, wanted);
}

// A Linux neighbour accepts our packets: what its tables say is the proof.
TEST_F(AnnounceTest, UpdatesTheNeighbourTableOfThePeer) {
  auto route = OpenRoute(peer_);
  Must(route->AddAddress(far_index_, *IpPrefix::Parse("10.100.0.1/24")));
  Neighbour stale;
  stale.address = *IpAddress::Parse("10.100.0.7");
  stale.mac = *MacAddress::Parse("02:00:00:00:00:99");
  stale.link = far_index_;
  stale.state = 0x04;  // NUD_STALE
  Must(route->SetNeighbour(stale));
  Neighbour stale6 = stale;
  stale6.address = *IpAddress::Parse("fd00:100::7");
  Must(route->SetNeighbour(stale6));
  const auto learned = [&] {
    int count = 0;
    for (const Neighbour& n : Must(route->ListNeighbours(far_index_))) count += n.mac == kMac ? 1 : 0;
    return count == 2;
  };
  EXPECT_FALSE(learned());
  const Deadline deadline = NetDeadline();
  // Repeated: the kernel ignores changes within a second of the last one (locktime).
  while (!learned() && std::chrono::steady_clock::now() < deadline) {
    Must(Announce(pod_, index_, kMac, {stale.address, stale6.address}));
  }
  EXPECT_TRUE(learned());
}

TEST_F(AnnounceTest, RefusalsSayWhatToDo) {
  LinkChange down;
  down.up = false;
  Must(OpenRoute(pod_)->ChangeLink(index_, down));
  const auto refused = Announce(pod_, index_, kMac, {IpAddress::V4(1)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().hint, "the interface must be up");
  EXPECT_EQ(Announce(pod_, 4242, kMac, {IpAddress::V4(1)}).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(Announce(pod_, 4242, kMac, {}));
}

// Announcements as LinuxKernel sends them: by the kernel where it can, else by a packet
// socket; always the same frame, once.

constexpr std::uint16_t kArp = 0x0806;

class KernelAnnounceTest : public ::testing::Test {
 protected:
  KernelAnnounceTest() {
    const int index = AddVeth(pod_, "net1", peer_, "far1");
    auto peer = OpenRoute(peer_);
    far_index_ = GetLink(*peer, "far1").index;
    Must(route_->AddAddress(index, *IpPrefix::Parse("10.100.0.7/24")));
    BringUp(*route_, index);
    BringUp(*peer, far_index_);
    if (!Must(route_->WaitCarrier(index, NetDeadline())) ||
        !Must(peer->WaitCarrier(far_index_, NetDeadline()))) {
      Die(Error{ErrorCode::kTimeout, "the veth pair did not come up", "", 0});
    }
    link_ = GetLink(*route_, index);
  }
  NetNs pod_ = MakeNetns();
  NetNs peer_ = MakeNetns();
  std::unique_ptr<RouteApi> route_ = OpenRoute(pod_);
  LinuxKernel kernel_{Root()};
  Link link_;
  int far_index_ = 0;
  const IpAddress address_ = *IpAddress::Parse("10.100.0.7");
  const IpAddress second_ = *IpAddress::Parse("10.100.0.8");
};

TEST_F(KernelAnnounceTest, TheKernelSendsTheSameFrameOnceAndKeepsNothing) {
  Capture arp(peer_, far_index_);
  EXPECT_TRUE(Must(nl::SendGratuitousArp(pod_, link_.index, address_)));
  for (const Neighbour& neighbour : Must(route_->ListNeighbours(link_.index))) {
    EXPECT_NE(neighbour.address, address_);
  }
  EXPECT_EQ(arp.Next(kArp), GratuitousArp(link_.mac, address_));
  // The next frame is the next announcement, not a repetition.
  Must(Announce(pod_, link_.index, link_.mac, {second_}));
  EXPECT_EQ(arp.Next(kArp), GratuitousArp(link_.mac, second_));
}

TEST_F(KernelAnnounceTest, NotWhereTheKernelMightNameAnotherSender) {
  Must(route_->AddAddress(link_.index, *IpPrefix::Parse("10.100.0.8/24")));
  EXPECT_FALSE(Must(nl::SendGratuitousArp(pod_, link_.index, address_)));
  EXPECT_FALSE(Must(nl::SendGratuitousArp(pod_, link_.index, second_)));
}

TEST_F(KernelAnnounceTest, AllAddressesAreAnnounced) {
  Must(route_->AddAddress(link_.index, *IpPrefix::Parse("10.100.0.8/24")));
  Capture arp(peer_, far_index_);
  Must(kernel_.Announce(pod_, link_, {address_, second_}));
  EXPECT_EQ(arp.Next(kArp), GratuitousArp(link_.mac, address_));
  EXPECT_EQ(arp.Next(kArp), GratuitousArp(link_.mac, second_));
}

TEST_F(KernelAnnounceTest, OneOfEachFamily) {
  const auto v6 = *IpAddress::Parse("fd00:100::7");
  Capture arp(peer_, far_index_);
  Capture ipv6(peer_, far_index_);
  Must(kernel_.Announce(pod_, link_, {v6, address_}));
  EXPECT_EQ(arp.Next(kArp), GratuitousArp(link_.mac, address_));
  const auto wanted = UnsolicitedAdvertisement(link_.mac, v6);
  auto seen = ipv6.Next(0x86dd);
  while (seen && *seen != wanted) seen = ipv6.Next(0x86dd);
  EXPECT_EQ(seen, wanted);
}

}  // namespace
}  // namespace railhead::testing

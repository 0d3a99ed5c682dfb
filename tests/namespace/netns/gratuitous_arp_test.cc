// Announcements as LinuxKernel sends them: by the kernel where it can, else by a packet
// socket; always the same frame, once.
#include <gtest/gtest.h>

#include "netns/linux_kernel.h"
#include "netns/nl/neighbours.h"
#include "netns/packet/announce.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

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

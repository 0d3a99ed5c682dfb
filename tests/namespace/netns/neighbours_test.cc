// Resolving neighbours and waiting for them, between two namespaces.

#include <gtest/gtest.h>
#include <linux/neighbour.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "netns/nl/neighbour_messages.h"
#include "netns/nl/neighbour_queue.h"
#include "netns/ns/sysctl.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;

class NeighbourTest : public ::testing::TestWithParam<bool> {
 protected:
  NeighbourTest() {
    index_ = AddVeth(pod_, "net1", peer_, "far1");
    far_ = GetLink(*peer_route_, "far1");
    BringUp(*pod_route_, index_);
    BringUp(*peer_route_, far_.index);
    if (!Must(pod_route_->WaitCarrier(index_, NetDeadline())) ||
        !Must(peer_route_->WaitCarrier(far_.index, NetDeadline()))) {
      Die(Error{ErrorCode::kTimeout, "the veth pair did not come up", "", 0});
    }
    Must(pod_route_->AddAddress(index_, *IpPrefix::Parse(GetParam() ? "10.100.0.1/24" : "fd00:100::1/64")));
  }
  void GivePeerTheAddress() { Must(peer_route_->AddAddress(far_.index, {address_, GetParam() ? 24 : 64})); }
  // The kernel gives up soon instead of after 3 s.
  void GiveUpSoon() {
    const std::string where = std::string("net/") + (GetParam() ? "ipv4" : "ipv6") + "/neigh/net1/";
    Must(WriteSysctls(pod_, {{where + "retrans_time_ms", "20"}, {where + "mcast_solicit", "1"}}));
  }
  [[nodiscard]] bool HasFailed() const {
    const auto all = Must(pod_route_->ListNeighbours(index_));
    return std::any_of(all.begin(), all.end(),
                       [&](const Neighbour& one) { return one.address == address_ && nl::HasFailed(one); });
  }

  [[nodiscard]] bool IsAboutIt(const std::vector<std::uint8_t>& frame) const {
    const auto* end = address_.Data() + address_.Size();
    return std::search(frame.begin() + 14, frame.end(), address_.Data(), end) != frame.end();
  }

  NetNs pod_ = MakeNetns();
  NetNs peer_ = MakeNetns();
  std::unique_ptr<RouteApi> pod_route_ = OpenRoute(pod_);
  std::unique_ptr<RouteApi> peer_route_ = OpenRoute(peer_);
  int index_ = 0;
  Link far_;
  const IpAddress address_ = *IpAddress::Parse(GetParam() ? "10.100.0.254" : "fd00:100::254");
};

INSTANTIATE_TEST_SUITE_P(Families, NeighbourTest, ::testing::Bool(),
                         [](const auto& family) { return family.param ? "Ipv4" : "Ipv6"; });

TEST_P(NeighbourTest, ResolvesOneThatIsThere) {
  GivePeerTheAddress();
  Must(pod_route_->ResolveNeighbour(index_, address_));
  EXPECT_EQ(Must(pod_route_->WaitNeighbour(index_, address_, NetDeadline())), far_.mac);
  // Already known, so it does not wait.
  EXPECT_EQ(Must(pod_route_->WaitNeighbour(index_, address_, std::chrono::steady_clock::now())), far_.mac);
}

TEST_P(NeighbourTest, EndsAtTheDeadline) {
  const auto soon = std::chrono::steady_clock::now() + milliseconds(50);
  EXPECT_EQ(Must(pod_route_->WaitNeighbour(index_, address_, soon)), std::nullopt) << "never asked";
  Must(pod_route_->ResolveNeighbour(index_, address_));
  EXPECT_EQ(Must(pod_route_->WaitNeighbour(index_, address_, soon + milliseconds(50))), std::nullopt);
}

TEST_P(NeighbourTest, AsksAgainWhereTheKernelHasGivenUp) {
  GiveUpSoon();
  Must(pod_route_->ResolveNeighbour(index_, address_));
  const Deadline deadline = NetDeadline();
  while (!HasFailed() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  ASSERT_TRUE(HasFailed());
  GivePeerTheAddress();
  EXPECT_EQ(Must(pod_route_->WaitNeighbour(index_, address_, NetDeadline())), far_.mac);
}

TEST_P(NeighbourTest, AsksAgainWhileItWaits) {
  GiveUpSoon();
  Capture wire(peer_, far_.index);
  std::optional<MacAddress> found;
  std::thread waiting([&] {
    auto route = OpenRoute(pod_);
    Must(route->ResolveNeighbour(index_, address_));
    found = Must(route->WaitNeighbour(index_, address_, NetDeadline()));
  });
  // The kernel sends one request for each ResolveNeighbour().
  int asked = 0;
  while (asked < 3) {
    const auto frame = wire.Next(GetParam() ? 0x0806 : 0x86dd);
    if (!frame) break;
    if (IsAboutIt(*frame)) ++asked;
  }
  EXPECT_EQ(asked, 3);
  GivePeerTheAddress();
  waiting.join();
  EXPECT_EQ(found, far_.mac);
}

// ADD prepares the link without a link-local address. Only from such an address would the kernel ask for an
// IPv6 neighbour to which it has nothing to send.
TEST_P(NeighbourTest, NeedsNoLinkLocalAddress) {
  NetNs pod = MakeNetns();
  auto route = OpenRoute(pod);
  const int index = AddVeth(pod, "net2", peer_, "far2");
  const Link far = GetLink(*peer_route_, "far2");
  LinkChange up;
  up.addr_gen_mode = AddrGenMode::kNone;
  up.up = true;
  Must(route->ChangeLink(index, up));
  BringUp(*peer_route_, far.index);
  ASSERT_TRUE(Must(route->WaitCarrier(index, NetDeadline())));
  Must(route->AddAddress(index, *IpPrefix::Parse(GetParam() ? "10.100.0.1/24" : "fd00:100::1/64")));
  Must(peer_route_->AddAddress(far.index, {address_, GetParam() ? 24 : 64}));
  Must(route->ResolveNeighbour(index, address_));
  EXPECT_EQ(Must(route->WaitNeighbour(index, address_, NetDeadline())), far.mac);
}

// The kernel repeats ARP requests every second. It does not repeat these solicitations, so we do.
TEST_P(NeighbourTest, AsksEverySecond) {
  NetNs pod = MakeNetns();
  auto route = OpenRoute(pod);
  const int index = AddVeth(pod, "net2", peer_, "far2");
  const Link far = GetLink(*peer_route_, "far2");
  LinkChange up;
  up.addr_gen_mode = AddrGenMode::kNone;
  up.up = true;
  Must(route->ChangeLink(index, up));
  BringUp(*peer_route_, far.index);
  ASSERT_TRUE(Must(route->WaitCarrier(index, NetDeadline())));
  Must(route->AddAddress(index, *IpPrefix::Parse(GetParam() ? "10.100.0.1/24" : "fd00:100::1/64")));
  // The kernel does not give up.
  Must(WriteSysctls(
      pod, {{"net/ipv4/neigh/net2/mcast_solicit", "1000"}, {"net/ipv6/neigh/net2/mcast_solicit", "1000"}}));
  Capture wire(peer_, far.index);
  std::optional<MacAddress> found;
  std::thread waiting([&] {
    auto own = OpenRoute(pod);
    Must(own->ResolveNeighbour(index, address_));
    found = Must(own->WaitNeighbour(index, address_, NetDeadline()));
  });
  for (int asked = 0; asked < 2;) {
    const auto frame = wire.Next(GetParam() ? 0x0806 : 0x86dd);
    if (!frame) break;
    if (IsAboutIt(*frame)) ++asked;
  }
  Must(peer_route_->AddAddress(far.index, {address_, GetParam() ? 24 : 64}));
  waiting.join();
  EXPECT_EQ(found, far.mac);
}

// Without an address the kernel cannot ask; a later address makes it possible.
TEST_P(NeighbourTest, WithoutAnyAddressItIsNoError) {
  NetNs pod = MakeNetns();
  auto route = OpenRoute(pod);
  const int index = AddVeth(pod, "net2", peer_, "far2");
  LinkChange up;
  up.addr_gen_mode = AddrGenMode::kNone;
  up.up = true;
  Must(route->ChangeLink(index, up));
  Must(route->ResolveNeighbour(index, address_));
  EXPECT_EQ(Must(route->WaitNeighbour(index, address_, std::chrono::steady_clock::now())), std::nullopt);
}

TEST_P(NeighbourTest, APermanentEntryCounts) {
  Neighbour set;
  set.link = index_;
  set.address = address_;
  set.mac = *MacAddress::Parse("02:00:00:00:00:99");
  set.state = NUD_PERMANENT;
  Must(pod_route_->SetNeighbour(set));
  EXPECT_EQ(Must(pod_route_->WaitNeighbour(index_, address_, std::chrono::steady_clock::now())), set.mac);
}

// Packets that a socket sends to a neighbour that does not exist.
TEST_P(NeighbourTest, KeepsNoMoreForAnUnknownOneThanIsSaid) {
  constexpr std::uint32_t kLimit = 16'384;
  const auto kept_of = [&](int packets) {
    UniqueFd fd;
    Must(OpenSocketsIn(pod_, [&]() -> Result<void> {
      fd = UniqueFd(socket(address_.Family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      return {};
    }));
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(9);
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(9);
    std::memcpy(GetParam() ? static_cast<void*>(&v4.sin_addr) : &v6.sin6_addr, address_.Data(),
                address_.Size());
    const auto* to =
        GetParam() ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
    for (int i = 0; i < packets; ++i)
      EXPECT_EQ(sendto(fd.get(), "probe", 5, 0, to, GetParam() ? sizeof v4 : sizeof v6), 5);
    int kept = 0;
    EXPECT_EQ(ioctl(fd.get(), SIOCOUTQ, &kept), 0);
    return static_cast<std::uint32_t>(kept);
  };
  EXPECT_GT(kept_of(100), 2 * kLimit) << "the kernel's own limit";
  Must(LimitNeighbourQueue(pod_, index_, address_.Family(), kLimit));
  const std::uint32_t kept = kept_of(100);
  EXPECT_LE(kept, kLimit);
  EXPECT_GT(kept, kLimit / 2);
  EXPECT_EQ(LimitNeighbourQueue(pod_, 4242, address_.Family(), kLimit).error().code, ErrorCode::kNotFound);
}

TEST_P(NeighbourTest, OfALinkThatIsGone) {
  EXPECT_EQ(pod_route_->ResolveNeighbour(4242, address_).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace railhead::testing

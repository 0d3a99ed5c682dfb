// What the kernel configures from the router advertisement of a pod is no use of the host.
#include "netns/nl/host_use.h"

#include <gtest/gtest.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "netns/base/unique_fd.h"
#include "netns/ns/netns.h"
#include "netns/ns/sysctl.h"
#include "tests/support/eventually.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

// A router for half an hour, with one prefix for addresses (RFC 4861 section 4.2, 4.6.2).
struct Advertisement {
  nd_router_advert router{};
  nd_opt_prefix_info prefix{};
};

Advertisement AdvertisementOf(const IpPrefix& prefix, std::uint32_t valid) {
  Advertisement message;
  message.router.nd_ra_type = ND_ROUTER_ADVERT;
  message.router.nd_ra_router_lifetime = htons(1800);
  message.prefix.nd_opt_pi_type = ND_OPT_PREFIX_INFORMATION;
  message.prefix.nd_opt_pi_len = sizeof(message.prefix) / 8;
  message.prefix.nd_opt_pi_prefix_len = static_cast<std::uint8_t>(prefix.length);
  message.prefix.nd_opt_pi_flags_reserved = ND_OPT_PI_FLAG_ONLINK | ND_OPT_PI_FLAG_AUTO;
  message.prefix.nd_opt_pi_valid_time = htonl(valid);
  message.prefix.nd_opt_pi_preferred_time = htonl(valid);
  std::memcpy(&message.prefix.nd_opt_pi_prefix, prefix.address.Data(), sizeof(in6_addr));
  return message;
}

class HostUseTest : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  HostUseTest() {
    index_ = AddVeth(host_, "pf0v0", pod_, "net1");
    sender_ = GetLink(*pod_route_, "net1").index;
    Must(WriteSysctls(host_, {{"net/ipv6/conf/pf0v0/accept_ra", "1"},
                              {"net/ipv6/conf/pf0v0/accept_dad", "0"},
                              {"net/ipv6/conf/pf0v0/use_tempaddr", "2"}}));
    Must(WriteSysctls(pod_, {{"net/ipv6/conf/net1/accept_dad", "0"}}));
    Must(OpenSocketsIn(pod_, [&]() -> Result<void> {
      socket_.Reset(socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6));
      if (!socket_.valid()) return FailSys(errno, "opening a raw socket");
      return {};
    }));
    // Others drop what a router may have forwarded.
    const int hops = 255;
    if (setsockopt(socket_.get(), IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops)) != 0)
      Die(SysError(errno, "setting the hop limit"));
    BringUp(*host_route_, index_);
    BringUp(*pod_route_, sender_);
    if (!Must(host_route_->WaitCarrier(index_, NetDeadline())))
      Die(Error{ErrorCode::kTimeout, "no carrier", "", 0});
  }

  // false: the link-local address of the sender cannot be used yet.
  [[nodiscard]] bool Send(const Advertisement& message) const {
    sockaddr_in6 all{};
    all.sin6_family = AF_INET6;
    all.sin6_scope_id = static_cast<std::uint32_t>(sender_);
    const auto nodes = *IpAddress::Parse("ff02::1");
    std::memcpy(&all.sin6_addr, nodes.Data(), nodes.Size());
    return sendto(socket_.get(), &message, sizeof(message), 0, reinterpret_cast<const sockaddr*>(&all),
                  sizeof(all)) == sizeof(message);
  }

  [[nodiscard]] std::vector<LinkAddress> Autoconfigured() const {
    auto all = Must(host_route_->ListAddresses(index_));
    std::erase_if(all, [&](const LinkAddress& one) { return !prefix_.Contains(one.prefix.address); });
    return all;
  }
  [[nodiscard]] bool HasAdvertisedDefault() const {
    const auto routes = Must(host_route_->ListRoutes(AF_INET6, kTableMain));
    return std::ranges::any_of(routes, [&](const Route& route) {
      return route.destination.length == 0 && route.link == index_ && route.protocol == RTPROT_RA;
    });
  }
  void Configure() {
    const Advertisement message = AdvertisementOf(prefix_, GetParam());
    // An address, and a temporary one.
    ASSERT_TRUE(Eventually([&] {
      return (Autoconfigured().size() >= 2 && HasAdvertisedDefault()) || (Send(message) && false);
    })) << "the kernel took no router advertisement";
  }
  // The same of the one link as of all.
  std::string Why(const char* node_address = "") {
    const auto node = IpAddress::Parse(node_address);
    const auto use = Must(FindHostUse(*host_route_, GetLink(*host_route_, index_), node));
    const auto all = Must(FindHostUses(*host_route_, Must(host_route_->ListLinks()), node));
    EXPECT_EQ(all.contains(index_), use.has_value());
    return use ? use->text : "";
  }

  const IpPrefix prefix_ = *IpPrefix::Parse("2001:db8:7::/64");
  NetNs host_ = MakeNetns();
  NetNs pod_ = MakeNetns();
  std::unique_ptr<RouteApi> host_route_ = OpenRoute(host_);
  std::unique_ptr<RouteApi> pod_route_ = OpenRoute(pod_);
  UniqueFd socket_;
  int index_ = 0;
  int sender_ = 0;
};

// For two hours, and for ever.
INSTANTIATE_TEST_SUITE_P(Lifetimes, HostUseTest, ::testing::Values(7200U, 0xffffffffU));

TEST_P(HostUseTest, OfARouterAdvertisementIsNone) {
  // The node's own network.
  const int eth0 = AddVeth(host_, "eth0", pod_, "far0");
  BringUp(*host_route_, eth0);
  BringUp(*pod_route_, GetLink(*pod_route_, "far0").index);
  ASSERT_TRUE(Must(host_route_->WaitCarrier(eth0, NetDeadline())));
  Must(host_route_->AddAddress(eth0, *IpPrefix::Parse("192.0.2.10/24")));
  Route route;
  route.destination = *IpPrefix::Parse("0.0.0.0/0");
  route.gateway = IpAddress::Parse("192.0.2.254");
  route.link = eth0;
  Must(host_route_->AddRoute(route));
  EXPECT_EQ(Why(), "");

  ASSERT_NO_FATAL_FAILURE(Configure());
  EXPECT_EQ(Why(), "");
  for (LinkAddress address : Autoconfigured()) {
    EXPECT_TRUE(IsAutoconfigured(address)) << address.flags;
    address.protocol = IFAPROT_UNSPEC;
    EXPECT_TRUE(IsAutoconfigured(address)) << "before Linux 5.18: " << address.flags;
  }
  EXPECT_EQ(Must(FindHostUse(*host_route_, GetLink(*host_route_, eth0), std::nullopt))->text,
            "carries the host's address 192.0.2.10/24");
  // Until somebody sets an address there, even one of the same prefix.
  Must(host_route_->AddAddress(index_, *IpPrefix::Parse("2001:db8:7::99/64")));
  EXPECT_EQ(Why(), "carries the host's address 2001:db8:7::99/64");
}

TEST_P(HostUseTest, ANodeThatHasNothingElse) {
  ASSERT_NO_FATAL_FAILURE(Configure());
  EXPECT_EQ(Why(), "carries the host's default route, which a router advertises");
  const std::string own = Autoconfigured().front().prefix.address.ToString();
  EXPECT_EQ(Why(own.c_str()), "carries the node's address " + own + "/64");
}

}  // namespace
}  // namespace railhead::testing

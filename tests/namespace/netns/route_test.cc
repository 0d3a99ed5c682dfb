// Addresses, routes, rules and neighbours on the real kernel.
#include "netns/nl/route.h"

#include <gtest/gtest.h>
#include <linux/neighbour.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

IpAddress Ip(const char* text) {
  return *IpAddress::Parse(text);
}
IpPrefix Prefix(const char* text) {
  return *IpPrefix::Parse(text);
}

class RouteTest : public ::testing::Test {
 protected:
  RouteTest() {
    index_ = AddVeth(ns_, "net1", ns_, "far1");
    BringUp(*route_, index_);
    BringUp(*route_, GetLink(*route_, "far1").index);
  }

  std::vector<Route> RailTable() { return Must(route_->ListRoutes(AF_INET, 1000)); }

  NetNs ns_ = MakeNetns();
  std::unique_ptr<RouteApi> route_ = OpenRoute(ns_);
  int index_ = 0;
};

bool HasAddress(const std::vector<LinkAddress>& list, const IpPrefix& wanted) {
  return std::ranges::find(list, wanted, &LinkAddress::prefix) != list.end();
}

TEST_F(RouteTest, AddressesOfBothFamilies) {
  Must(route_->AddAddress(index_, Prefix("10.100.0.10/24")));
  Must(route_->AddAddress(index_, Prefix("10.100.0.11/32")));
  Must(route_->AddAddress(index_, Prefix("fd00:100::10/64")));
  Must(route_->AddAddress(GetLink(*route_, "far1").index, Prefix("10.200.0.1/24")));
  const auto listed = Must(route_->ListAddresses(index_));
  EXPECT_TRUE(HasAddress(listed, Prefix("10.100.0.10/24")));
  EXPECT_TRUE(HasAddress(listed, Prefix("10.100.0.11/32")));
  EXPECT_TRUE(HasAddress(listed, Prefix("fd00:100::10/64")));
  EXPECT_FALSE(HasAddress(listed, Prefix("10.200.0.1/24")));

  EXPECT_TRUE(Must(route_->DeleteAddress(index_, Prefix("10.100.0.10/24"))));
  EXPECT_FALSE(Must(route_->DeleteAddress(index_, Prefix("10.100.0.10/24"))));
  EXPECT_TRUE(Must(route_->DeleteAddress(index_, Prefix("fd00:100::10/64"))));
  EXPECT_FALSE(Must(route_->DeleteAddress(index_, Prefix("fd00:100::10/64"))));
  EXPECT_FALSE(Must(route_->DeleteAddress(4242, Prefix("10.100.0.10/24"))));
  const auto left = Must(route_->ListAddresses(index_));
  EXPECT_FALSE(HasAddress(left, Prefix("10.100.0.10/24")));
  EXPECT_TRUE(HasAddress(left, Prefix("10.100.0.11/32")));
}

TEST_F(RouteTest, AddressRefusals) {
  Must(route_->AddAddress(index_, Prefix("10.100.0.10/24")));
  const auto twice = route_->AddAddress(index_, Prefix("10.100.0.10/24"));
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, ErrorCode::kExists);
  EXPECT_NE(twice.error().message.find("10.100.0.10/24"), std::string::npos) << twice.error().message;
  const auto nowhere = route_->AddAddress(4242, Prefix("10.100.0.10/24"));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(route_->ListAddresses(4242).error().code, ErrorCode::kNotFound);
}

TEST_F(RouteTest, AddressWhileTheLinkIsDown) {
  LinkChange down;
  down.up = false;
  Must(route_->ChangeLink(index_, down));
  Must(route_->AddAddress(index_, Prefix("10.100.0.10/24")));
  EXPECT_TRUE(HasAddress(Must(route_->ListAddresses(index_)), Prefix("10.100.0.10/24")));
  BringUp(*route_, index_);
  EXPECT_EQ(Must(route_->ListRoutes(AF_INET, kTableMain)).size(), 1U);  // the connected one
}

TEST_F(RouteTest, RoutesInATableOfTheirOwn) {
  Must(route_->AddAddress(index_, Prefix("10.100.0.10/24")));
  Route connected;
  connected.destination = Prefix("10.100.0.0/24");
  connected.source = Ip("10.100.0.10");
  connected.link = index_;
  connected.table = 1000;  // above 255: RTA_TABLE
  connected.scope = RouteScope::kLink;
  Route supernet;
  supernet.destination = Prefix("10.0.0.0/8");
  supernet.gateway = Ip("10.100.0.254");
  supernet.link = index_;
  supernet.table = 1000;
  supernet.metric = 50;
  supernet.mtu = 1400;
  supernet.advmss = 1300;
  Route everything = supernet;
  everything.destination = Prefix("0.0.0.0/0");

  EXPECT_TRUE(RailTable().empty());
  for (const Route& wanted : {connected, supernet, everything}) Must(route_->AddRoute(wanted));
  const auto listed = RailTable();
  EXPECT_EQ(listed.size(), 3U);
  for (const Route& wanted : {connected, supernet, everything}) {
    EXPECT_NE(std::find(listed.begin(), listed.end(), wanted), listed.end()) << wanted.ToString();
  }
  EXPECT_EQ(route_->AddRoute(supernet).error().code, ErrorCode::kExists);
  // Table 0: all tables, this one and main among them.
  const auto all = Must(route_->ListRoutes(AF_INET, 0));
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const Route& r) { return r.table == 1000; }), 3);
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const Route& r) { return r.table == kTableMain; }), 1);

  for (const Route& wanted : {everything, supernet, connected}) {
    EXPECT_TRUE(Must(route_->DeleteRoute(wanted))) << wanted.ToString();
    EXPECT_FALSE(Must(route_->DeleteRoute(wanted))) << wanted.ToString();
  }
  EXPECT_TRUE(RailTable().empty());
}

TEST_F(RouteTest, SmallTablesAndIpv6) {
  Must(route_->AddAddress(index_, Prefix("fd00:100::10/64")));
  Route route;
  route.destination = Prefix("fd00::/16");
  route.gateway = Ip("fd00:100::1");
  route.link = index_;
  route.table = 100;
  route.metric = 1024;
  Must(route_->AddRoute(route));
  EXPECT_EQ(Must(route_->ListRoutes(AF_INET6, 100)), std::vector<Route>{route});
  EXPECT_TRUE(Must(route_->ListRoutes(AF_INET6, 101)).empty());
  EXPECT_TRUE(Must(route_->DeleteRoute(route)));
  EXPECT_FALSE(Must(route_->DeleteRoute(route)));
}

TEST_F(RouteTest, Ipv4ThroughAnIpv6Gateway) {
  Must(route_->AddAddress(index_, Prefix("10.100.0.10/24")));
  Must(route_->AddAddress(index_, Prefix("fd00:100::10/64")));
  Route route;
  route.destination = Prefix("10.0.0.0/8");
  route.gateway = Ip("fd00:100::1");
  route.link = index_;
  route.table = 1000;
  Must(route_->AddRoute(route));
  EXPECT_EQ(RailTable(), std::vector<Route>{route});
  EXPECT_TRUE(Must(route_->DeleteRoute(route)));
}

TEST_F(RouteTest, RefusedRouteCarriesTheKernelsWords) {
  Route route;
  route.destination = Prefix("10.0.0.0/8");
  route.gateway = Ip("192.168.77.1");
  route.link = index_;
  const auto refused = route_->AddRoute(route);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "adding route 10.0.0.0/8 via 192.168.77.1 dev " +
                                         std::to_string(index_) +
                                         ": Network is unreachable (Nexthop has invalid gateway)");
}

TEST_F(RouteTest, ManyRoutesComeInSeveralPieces) {
  for (int i = 0; i < 2000; ++i) {
    Route route;
    route.destination = {IpAddress::V4(0x0a000000U + (static_cast<std::uint32_t>(i) << 8U)), 24};
    route.link = index_;
    route.table = 1000;
    route.scope = RouteScope::kLink;
    Must(route_->AddRoute(route));
  }
  EXPECT_EQ(RailTable().size(), 2000U);
}

// The kernel flags a dump that overlaps a change; the list must still be whole.
TEST_F(RouteTest, DumpsStayWholeWhileLinksChange) {
  std::vector<int> kept;
  kept.reserve(60);
  for (int i = 0; i < 60; ++i)
    kept.push_back(AddVeth(ns_, "a" + std::to_string(i), ns_, "b" + std::to_string(i)));
  const auto whole = [&](const std::vector<Link>& links) {
    return std::all_of(kept.begin(), kept.end(), [&](int index) {
      return std::count_if(links.begin(), links.end(), [&](const Link& l) { return l.index == index; }) == 1;
    });
  };
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) DeleteLink(ns_, AddMacvlan(ns_, "passing", index_));
  });
  for (int i = 0; i < 10; ++i) {
    const auto links = route_->ListLinks();
    if (links) {
      EXPECT_TRUE(whole(*links));
    } else {
      EXPECT_EQ(links.error().code, ErrorCode::kBusy) << links.error().message;
    }
  }
  stop = true;
  writer.join();
  EXPECT_TRUE(whole(Must(route_->ListLinks())));
}

TEST_F(RouteTest, Rules) {
  const Rule source{AF_INET, 1000, Prefix("10.100.0.10/32"), "", 100};
  const Rule interface { AF_INET, 1001, std::nullopt, "net1", 70000 };
  const Rule six{AF_INET6, 1000, Prefix("fd00:100::10/128"), "net1", 100};
  const std::size_t before = Must(route_->ListRules(AF_INET)).size();
  for (const Rule& rule : {source, interface, six}) {
    Must(route_->AddRule(rule));
    const auto rules = Must(route_->ListRules(rule.family));
    EXPECT_EQ(std::count(rules.begin(), rules.end(), rule), 1) << rule.ToString();
    const auto twice = route_->AddRule(rule);
    ASSERT_FALSE(twice) << rule.ToString();
    EXPECT_EQ(twice.error().code, ErrorCode::kExists);
  }
  EXPECT_EQ(Must(route_->ListRules(AF_INET)).size(), before + 2);
  // The same rule with another table is another rule.
  Rule other = source;
  other.table = 101;
  EXPECT_FALSE(Must(route_->DeleteRule(other)));
  for (const Rule& rule : {source, interface, six}) {
    EXPECT_TRUE(Must(route_->DeleteRule(rule))) << rule.ToString();
    EXPECT_FALSE(Must(route_->DeleteRule(rule))) << rule.ToString();
  }
  EXPECT_EQ(Must(route_->ListRules(AF_INET)).size(), before);
}

TEST_F(RouteTest, Neighbours) {
  Neighbour neighbour;
  neighbour.address = Ip("10.100.0.254");
  neighbour.mac = *MacAddress::Parse("02:00:00:00:00:fe");
  neighbour.link = index_;
  neighbour.state = NUD_PERMANENT;
  Must(route_->SetNeighbour(neighbour));
  Neighbour six = neighbour;
  six.address = Ip("fd00:100::1");
  Must(route_->SetNeighbour(six));
  auto listed = Must(route_->ListNeighbours(index_));
  EXPECT_EQ(std::count(listed.begin(), listed.end(), neighbour), 1);
  EXPECT_EQ(std::count(listed.begin(), listed.end(), six), 1);

  neighbour.mac = *MacAddress::Parse("02:00:00:00:00:ff");
  Must(route_->SetNeighbour(neighbour));
  listed = Must(route_->ListNeighbours(index_));
  EXPECT_EQ(std::count(listed.begin(), listed.end(), neighbour), 1);
  // The other link has its own neighbours (perhaps of multicast groups), but not these.
  const int far_index = GetLink(*route_, "far1").index;
  for (const Neighbour& other : Must(route_->ListNeighbours(far_index))) {
    EXPECT_EQ(other.link, far_index);
    EXPECT_NE(other.address, neighbour.address);
  }

  EXPECT_TRUE(Must(route_->DeleteNeighbour(neighbour)));
  EXPECT_FALSE(Must(route_->DeleteNeighbour(neighbour)));
  neighbour.link = 4242;
  EXPECT_FALSE(Must(route_->DeleteNeighbour(neighbour)));
}

TEST_F(RouteTest, OtherFamiliesAreRefused) {
  EXPECT_EQ(route_->ListRoutes(AF_UNSPEC, 0).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(route_->ListRules(AF_UNIX).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(route_->AddRule({}).error().code, ErrorCode::kInvalid);
}

TEST(RouteText, SaysWhatIproute2Says) {
  Route route;
  route.destination = Prefix("10.0.0.0/8");
  route.gateway = Ip("10.100.0.254");
  route.link = 5;
  route.table = 100;
  EXPECT_EQ(route.ToString(), "10.0.0.0/8 via 10.100.0.254 dev 5 table 100");
  route.destination = Prefix("0.0.0.0/0");
  route.source = Ip("10.100.0.10");
  route.metric = 7;
  route.table = kTableMain;
  EXPECT_EQ(route.ToString(), "default via 10.100.0.254 src 10.100.0.10 dev 5 metric 7");
  EXPECT_EQ((Rule{AF_INET, 1000, Prefix("10.100.0.10/32"), "", 100}).ToString(),
            "1000: from 10.100.0.10 lookup 100");
  EXPECT_EQ((Rule{AF_INET, 5, std::nullopt, "net1", 100}).ToString(), "5: from all oif net1 lookup 100");
  EXPECT_EQ((Rule{AF_INET, 5, Prefix("10.0.0.0/8"), "", 100}).ToString(), "5: from 10.0.0.0/8 lookup 100");
}

}  // namespace
}  // namespace railhead::testing

// Which links the host uses itself: one decision for kubelet's list, ADD, provisioning and suggestions.
#include "netns/nl/host_use.h"

#include <gtest/gtest.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "netns/kernel.h"
#include "tests/support/fake_kernel/fake_kernel.h"

namespace railhead::testing {
namespace {

constexpr int kLink = 5;
constexpr int kOther = 6;
constexpr unsigned kSlaac = IFA_F_MANAGETEMPADDR;

Link TheLink() {
  Link link;
  link.index = kLink;
  link.name = "pf0v0";
  return link;
}

LinkAddress Address(const char* prefix, unsigned flags, std::uint8_t protocol = 0, int link = kLink) {
  return {link, *IpPrefix::Parse(prefix), flags, protocol};
}

Route RouteTo(const char* destination, std::uint8_t protocol, std::uint32_t metric, int link = kLink) {
  Route route;
  route.destination = *IpPrefix::Parse(destination);
  route.link = link;
  route.protocol = protocol;
  route.metric = metric;
  return route;
}

// "": the host does not use it.
std::string Why(const HostFacts& facts) {
  const auto use = UseOf(facts, TheLink());
  return use ? use->text : "";
}

struct AddressCase {
  const char* what;
  LinkAddress address;
  const char* why;
};

TEST(HostUse, AddressesBySourceFlagsAndLifetime) {
  constexpr const char* kV4 = "carries the host's address 192.0.2.10/24";
  constexpr const char* kV6 = "carries the host's address 2001:db8::7/64";
  constexpr const char* kLeased4 = "carries the host's address 192.0.2.10/24 of DHCP or a network manager";
  constexpr const char* kLeased6 = "carries the host's address 2001:db8::7/64 of DHCP or a network manager";
  const std::vector<AddressCase> cases = {
      {"an administrator's", Address("192.0.2.10/24", IFA_F_PERMANENT), kV4},
      {"a second one of a subnet", Address("192.0.2.10/24", IFA_F_PERMANENT | IFA_F_SECONDARY), kV4},
      {"DHCP's", Address("192.0.2.10/24", 0), kLeased4},
      {"a second one of DHCP", Address("192.0.2.10/24", IFA_F_SECONDARY), kLeased4},
      {"an IPv4 link-local one was set by somebody", Address("169.254.7.1/16", IFA_F_PERMANENT),
       "carries the host's address 169.254.7.1/16"},
      {"an administrator's of IPv6", Address("2001:db8::7/64", IFA_F_PERMANENT), kV6},
      {"with temporary ones, for ever", Address("2001:db8::7/64", IFA_F_PERMANENT | kSlaac), kV6},
      {"with a protocol of its own", Address("2001:db8::7/64", IFA_F_PERMANENT, 77), kV6},
      {"DHCPv6's", Address("2001:db8::7/64", 0), kLeased6},
      {"DHCPv6's, with a protocol", Address("2001:db8::7/64", kSlaac, 5), kLeased6},
      {"of a manager that answers advertisements itself", Address("2001:db8::7/64", IFA_F_NOPREFIXROUTE),
       kLeased6},
      {"the same, with privacy", Address("2001:db8::7/64", kSlaac | IFA_F_NOPREFIXROUTE), kLeased6},
      {"the kernel's link-local one", Address("fe80::7/64", IFA_F_PERMANENT), ""},
      {"the same, from Linux 5.18", Address("fe80::7/64", IFA_F_PERMANENT, IFAPROT_KERNEL_LL), ""},
      {"loopback", Address("127.0.0.1/8", IFA_F_PERMANENT), ""},
      {"autoconfigured", Address("2001:db8::7/64", kSlaac), ""},
      {"the same, from Linux 5.18", Address("2001:db8::7/64", kSlaac, IFAPROT_KERNEL_RA), ""},
      {"the same, as long as the protocol says so", Address("2001:db8::7/64", 0, IFAPROT_KERNEL_RA), ""},
      {"tentative and deprecated",
       Address("2001:db8::7/64", kSlaac | IFA_F_TENTATIVE | IFA_F_DEPRECATED | IFA_F_OPTIMISTIC), ""},
      {"stable privacy", Address("2001:db8::7/64", kSlaac | IFA_F_STABLE_PRIVACY), ""},
      {"a privacy address", Address("2001:db8::7/64", IFA_F_TEMPORARY), ""},
      {"of another link", Address("192.0.2.10/24", IFA_F_PERMANENT, 0, kOther), ""},
  };
  for (const AddressCase& one : cases) {
    EXPECT_EQ(Why({.addresses = {one.address}}), one.why) << one.what;
  }
}

// Whatever is autoconfigured beside it does not hide an administrator's.
TEST(HostUse, OneOfSeveralAddresses) {
  const HostFacts facts{.addresses = {Address("2001:db8::7/64", kSlaac, IFAPROT_KERNEL_RA),
                                      Address("fe80::7/64", IFA_F_PERMANENT, IFAPROT_KERNEL_LL),
                                      Address("192.0.2.10/24", IFA_F_PERMANENT)}};
  EXPECT_EQ(Why(facts), "carries the host's address 192.0.2.10/24");
}

TEST(HostUse, TheNodesAddressCountsHoweverTheLinkGotIt) {
  HostFacts facts{.addresses = {Address("2001:db8::7/64", kSlaac, IFAPROT_KERNEL_RA)}};
  EXPECT_EQ(Why(facts), "");
  facts.node_address = IpAddress::Parse("2001:db8::7");
  EXPECT_EQ(Why(facts), "carries the node's address 2001:db8::7/64");
  EXPECT_TRUE(UseOf(facts, TheLink())->is_vital);
  facts.node_address = IpAddress::Parse("2001:db8::8");
  EXPECT_EQ(Why(facts), "");
}

struct RouteCase {
  const char* what;
  std::vector<Route> routes;
  std::string why;
  bool is_vital = false;
};

class HostRoutes : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr const char* kDefault = "carries the host's default route";
  [[nodiscard]] const char* Any() const { return GetParam() ? "::/0" : "0.0.0.0/0"; }
  [[nodiscard]] const char* Net() const { return GetParam() ? "fd00:9::/64" : "10.9.0.0/16"; }
  [[nodiscard]] Route Default(std::uint8_t protocol, std::uint32_t metric, int link = kLink) const {
    return RouteTo(Any(), protocol, metric, link);
  }
  static Route InTable(Route route, std::uint32_t table) {
    route.table = table;
    return route;
  }
  static Route Multipath(Route route, std::vector<int> links) {
    route.link = 0;
    route.multipath = std::move(links);
    return route;
  }
};

INSTANTIATE_TEST_SUITE_P(Families, HostRoutes, ::testing::Bool(),
                         [](const auto& family) { return family.param ? "Ipv6" : "Ipv4"; });

TEST_P(HostRoutes, ByProtocolMetricAndTable) {
  const std::string net = std::string("carries the host's route ") + Net() + " dev 5";
  const std::vector<RouteCase> cases = {
      {"the only default route", {Default(RTPROT_STATIC, 0)}, kDefault, true},
      {"of DHCP", {Default(RTPROT_DHCP, 100)}, kDefault, true},
      {"the better one", {Default(RTPROT_STATIC, 100), Default(RTPROT_STATIC, 200, kOther)}, kDefault, true},
      {"the worse one", {Default(RTPROT_STATIC, 200), Default(RTPROT_DHCP, 100, kOther)}, "", false},
      {"one of two equal ones",
       {Default(RTPROT_DHCP, 100, kOther), Default(RTPROT_DHCP, 100)},
       kDefault,
       true},
      {"one of several next hops", {Multipath(Default(RTPROT_STATIC, 0), {kOther, kLink})}, kDefault, true},
      {"of other next hops", {Multipath(Default(RTPROT_STATIC, 0), {kOther, 7})}, "", false},
      {"of a table that a rule names",
       {InTable(Default(RTPROT_STATIC, 200), 101), Default(RTPROT_STATIC, 0, kOther)},
       kDefault,
       false},
      {"the worse one of that table",
       {InTable(Default(RTPROT_STATIC, 200), 101), InTable(Default(RTPROT_STATIC, 9, kOther), 101)},
       "",
       false},
      {"advertised, beside the host's own",
       {Default(RTPROT_RA, 1), Default(RTPROT_STATIC, 1024, kOther)},
       "",
       false},
      {"its own, though an advertised one is better",
       {Default(RTPROT_STATIC, 1024), Default(RTPROT_RA, 1, kOther)},
       kDefault,
       true},
      {"a network that was set", {RouteTo(Net(), RTPROT_STATIC, 0)}, net, false},
      {"a network of a routing daemon", {RouteTo(Net(), 186, 20)}, net + " metric 20", false},
      {"a network before the default route, which is named",
       {RouteTo(Net(), RTPROT_STATIC, 0), Default(RTPROT_STATIC, 0)},
       kDefault,
       true},
      {"a network that comes with an address", {RouteTo(Net(), RTPROT_KERNEL, 0)}, "", false},
      {"a network that is advertised", {RouteTo(Net(), RTPROT_RA, 0)}, "", false},
      {"of another link", {RouteTo(Net(), RTPROT_STATIC, 0, kOther)}, "", false},
  };
  for (const RouteCase& one : cases) {
    const HostFacts facts{.routes = one.routes};
    const auto use = UseOf(facts, TheLink());
    EXPECT_EQ(use ? use->text : "", one.why) << one.what;
    EXPECT_EQ(use && use->is_vital, one.is_vital) << one.what;
  }
}

// A node without another default route: by which link it reaches Kubernetes is known by the node's address.
TEST_P(HostRoutes, ANodeThatHasAdvertisedDefaultRoutesOnly) {
  HostFacts facts{.routes = {Default(RTPROT_RA, 1024), Default(RTPROT_RA, 1024, kOther)}};
  EXPECT_EQ(Why(facts), std::string(kDefault) + ", which a router advertises");
  facts.node_address = IpAddress::Parse("2001:db8::7");
  EXPECT_NE(Why(facts), "") << "no link has that address";
  facts.node_address_found = true;
  EXPECT_EQ(Why(facts), "");
  facts.node_address_found = false;
  facts.routes[0].metric = 1025;
  EXPECT_EQ(Why(facts), "") << "the other one is used";
  facts.routes[0].metric = 1024;
  facts.routes.push_back(RouteTo(GetParam() ? "0.0.0.0/0" : "::/0", RTPROT_DHCP, 100, kOther));
  EXPECT_EQ(Why(facts), "") << "the node has one of the other family";
}

TEST(HostUse, RulesAndPorts) {
  for (std::string Rule::*name : {&Rule::iif, &Rule::oif}) {
    Rule rule;
    rule.family = AF_INET;
    rule.table = 100;
    rule.*name = "pf0v0";
    EXPECT_EQ(Why({.rules = {rule}}).substr(0, 21), "is in the host's rule");
    rule.*name = "pf1";
    EXPECT_EQ(Why({.rules = {rule}}), "");
  }
  Link port = TheLink();
  port.master = kOther;
  EXPECT_EQ(UseOf({}, port)->text, "belongs to a bond or bridge of the host");
}

// The same for one link, where only what matters is read, and for all.
TEST(HostUse, OfOneLinkAsOfAll) {
  FakeSysfs sysfs;
  FakeKernel kernel(sysfs);
  (void)kernel.AddPf({.address = "0000:41:00.0", .netdev = "pf0"}, {.count = 2});
  const auto route = kernel.OpenRoute(*kernel.HostNetns());
  ASSERT_TRUE(route);
  FakeState& state = kernel.state();
  for (const char* name : {"pf0", "pf0v0", "pf0v1"}) kernel.SetUp(kHost, name, true);
  const int vf = state.Find(kHost, "pf0v0")->link.index;
  const int pf = state.Find(kHost, "pf0")->link.index;
  const auto by = [&](const char* node_address) {
    const auto node = IpAddress::Parse(node_address);
    const auto links = (*route)->ListLinks();
    const auto all = FindHostUses(**route, *links, node).value();
    for (const Link& link : *links) {
      const auto one = FindHostUse(**route, link, node).value();
      const auto same = all.find(link.index);
      EXPECT_EQ(one, same == all.end() ? std::nullopt : std::optional(same->second)) << link.name;
    }
    std::set<int> used;
    for (const auto& [index, use] : all) used.insert(index);
    return used;
  };
  // A router advertises on the PF's network, which its VFs are on, too.
  auto& routes = state.Namespace(kHost)->routes;
  for (const char* name : {"pf0", "pf0v0", "pf0v1"}) {
    FakeNetdev& netdev = *state.Find(kHost, name);
    const IpPrefix prefix{IpAddress::Parse("2001:db8::")->Plus(static_cast<unsigned>(netdev.link.index)), 64};
    ASSERT_EQ(state.AddAddress(netdev, prefix), 0);
    netdev.address_flags[prefix].flags = kSlaac;
    routes.push_back(RouteTo("::/0", RTPROT_RA, 1024, netdev.link.index));
  }
  const std::set<int> all = {pf, vf, state.Find(kHost, "pf0v1")->link.index};
  EXPECT_EQ(by(""), all) << "nothing else is known of the node";
  EXPECT_EQ(by("192.0.2.1"), all);
  const std::string of_pf = IpAddress::Parse("2001:db8::")->Plus(static_cast<unsigned>(pf)).ToString();
  EXPECT_EQ(by(of_pf.c_str()), (std::set<int>{pf}));
  kernel.AddAddress(kHost, "pf0", "192.0.2.1/24");
  EXPECT_EQ(by("192.0.2.1"), (std::set<int>{pf}));
  kernel.AddDefaultRoute(kHost, "pf0", "192.0.2.254");
  EXPECT_EQ(by(""), (std::set<int>{pf}));
}

}  // namespace
}  // namespace railhead::testing

// Routes of an attachment: how their number counts, and what the cluster network keeps.
#include <algorithm>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cni/attachment/routing.h"
#include "cni/state/journal.h"
#include "netns/base/text.h"
#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {
namespace {

class PluginRoutesTest : public PluginFixture {
 protected:
  // Of an IPAM plugin that answers with so many routes.
  [[nodiscard]] Call WithRoutes(int count) const {
    nlohmann::json routes = nlohmann::json::array();
    for (int i = 0; i < count; ++i) {
      routes.push_back(
          {{"dst", IpAddress::V4(0x0b000000U + (static_cast<std::uint32_t>(i) << 8U)).ToString() + "/24"}});
    }
    return {.config = Device() + R"(,"ipam":{"type":"test-ipam","address":"10.100.0.10/24","routes":)" +
                      routes.dump() + "}"};
  }
  int CallsOf(const std::function<void()>& action) {
    const int before = kernel_.calls();
    action();
    return kernel_.calls() - before;
  }
};

// A route costs ADD one call for each of its two tables. CHECK asks for tables, not for routes.
TEST_F(PluginRoutesTest, CallsOfAddAndCheckByTheNumberOfRoutes) {
  std::vector<int> adds;
  std::vector<int> checks;
  for (const int count : {1, 101, 501}) {
    const Call call = WithRoutes(count);
    adds.push_back(CallsOf([&] { ASSERT_TRUE(Add(call)); }));
    checks.push_back(CallsOf([&] { EXPECT_TRUE(Check(call)); }));
    ASSERT_TRUE(Del(call));
  }
  EXPECT_EQ(adds[1] - adds[0], 200);
  EXPECT_EQ(adds[2] - adds[0], 1000);
  EXPECT_EQ(checks, std::vector<int>(3, checks[0]));
  EXPECT_LT(checks[0], adds[0]) << "CHECK is not slower than ADD";
}

TEST_F(PluginRoutesTest, CheckFindsEachRouteThatChanged) {
  const Call call = WithRoutes(3);
  ASSERT_TRUE(Add(call));
  ASSERT_TRUE(Check(call));
  auto& routes = kernel_.state().Namespace(pod_)->routes;
  const auto attached = routes;
  const int link = PodLink().index;
  int tried = 0;
  const auto changed = [&](std::size_t i, const std::function<void(Route&)>& change) {
    change(routes[i]);
    const auto checked = Check(call);
    EXPECT_FALSE(checked) << attached[i].ToString();
    routes = attached;
    ++tried;
  };
  for (std::size_t i = 0; i < attached.size(); ++i) {
    if (attached[i].link != link || attached[i].protocol == 2) continue;
    changed(i, [](Route& route) { ++route.link; });
    changed(i, [](Route& route) { ++route.metric; });
    changed(i, [](Route& route) { route.mtu = 1300; });
    changed(i, [](Route& route) { route.advmss = 1300; });
    changed(i, [](Route& route) { route.table = 77; });
    changed(i, [](Route& route) { route.destination.length = 31; });
    changed(i, [](Route& route) { route.gateway = IpAddress::Parse("10.100.0.99"); });
    changed(i, [](Route& route) { route.source.reset(); });
  }
  EXPECT_EQ(tried, 8 * (2 * (3 + 1) + 1)) << "two of each and of the rail's, and the connected one";
  EXPECT_TRUE(Check(call));
}

// Half of them on the link, each for a router of the others.
CniResult ResultWithRoutes(std::uint32_t count) {
  CniResult ipam;
  ipam.ips.push_back({*IpPrefix::Parse("10.100.0.10/24"), std::nullopt, std::nullopt});
  for (std::uint32_t i = 0; i < count / 2; ++i) {
    CniRoute to_router;
    to_router.destination = IpPrefix::Host(IpAddress::V4(0x0b000000U + i));
    to_router.scope = static_cast<int>(RouteScope::kLink);
    CniRoute by_router;
    by_router.destination = IpPrefix::Host(IpAddress::V4(0x0c000000U + i));
    by_router.gateway = to_router.destination.address;
    ipam.routes.push_back(to_router);
    ipam.routes.push_back(by_router);
  }
  return ipam;
}

// The plugin's own work, as CPU time: of eight times the routes it is 8 times as much, or 64 times if it
// grows with their square.
TEST_F(PluginRoutesTest, WorkDoesNotGrowFasterThanTheRoutes) {
  attachment::AttachPlan plan;
  plan.devices.resize(2);
  plan.devices[0].table = 100;
  plan.devices[1].table = 101;
  NetNs host = *kernel_.HostNetns();
  NetNs pod = *kernel_.OpenNetns(pod_);
  auto host_route = *kernel_.OpenRoute(host);
  auto pod_route = *kernel_.OpenRoute(pod);
  attachment::PodNetwork network{std::move(host), std::move(pod), std::move(host_route),
                                 std::move(pod_route)};
  const auto seconds = [&](std::uint32_t count) {
    const CniResult ipam = ResultWithRoutes(count);
    const auto now = [] {
      timespec time{};
      (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
    };
    double least = 1e9;
    for (int i = 0; i < 3; ++i) {
      const double begin = now();
      const auto addressing = attachment::ResolveAddressing({}, plan.devices[0], ipam);
      if (!addressing) ADD_FAILURE() << Describe(addressing.error());
      JournalEntry entry;
      entry.devices.resize(2);
      EXPECT_TRUE(attachment::RecordAddressing(network, plan, {*addressing, *addressing}, entry));
      least = std::min(least, now() - begin);
      EXPECT_EQ(entry.devices[1].addressing.routes.size(), 2 * count + 1);
    }
    return least;
  };
  const double few = seconds(1000);
  EXPECT_LT(seconds(8000) / few, 30);
}

// Its link of the best route to the prefix in the main table.
std::string Carrier(FakeState& state, const std::string& ns, const IpPrefix& destination) {
  const Route* best = nullptr;
  for (const Route& route : state.Namespace(ns)->routes) {
    const bool there = route.table == kTableMain && route.destination == destination;
    if (there && (best == nullptr || route.metric < best->metric)) best = &route;
  }
  return best == nullptr ? "none" : state.Find(ns, best->link)->link.name;
}

struct Family {
  const char* eth0;
  const char* router;
  const char* rail;  // its address
  const char* gateway;
  std::vector<std::string> prefixes;
  std::vector<std::uint32_t> metrics;  // that clusters give eth0's routes
};

class BothFamiliesTest : public PluginRoutesTest, public ::testing::WithParamInterface<Family> {
 protected:
  // eth0 with these routes, as its CNI plugin or a router has set them, and nothing else.
  void MakeEth0(std::uint32_t metric) {
    FakeState& state = kernel_.state();
    FakeNetdev& eth0 = *state.Find(pod_, "eth0");
    const auto addresses = eth0.addresses;
    for (const IpPrefix& address : addresses) ASSERT_EQ(state.DeleteAddress(eth0, address), 0);
    state.Namespace(pod_)->routes.clear();
    kernel_.AddAddress(pod_, "eth0", GetParam().eth0);
    for (const std::string& prefix : GetParam().prefixes) {
      Route route;
      route.destination = *IpPrefix::Parse(prefix);
      route.gateway = IpAddress::Parse(GetParam().router);
      route.link = eth0.link.index;
      route.metric = metric;
      ASSERT_EQ(state.AddRoute(pod_, route), 0) << prefix;
    }
  }
  // Its routes are those of eth0.
  [[nodiscard]] Call WithSameRoutes(const std::string& more = "") const {
    const nlohmann::json routes = GetParam().prefixes;
    return {.config = Device() + R"(,"ncclConfig":"required","gateway":")" + GetParam().gateway +
                      R"(","routes":)" + routes.dump() + "," + Ipam(GetParam().rail) + more};
  }
};

// For every prefix that both have, whatever the rail's table.
TEST_P(BothFamiliesTest, Eth0KeepsTheTrafficThatItHad) {
  for (const std::uint32_t metric : GetParam().metrics) {
    for (const char* table : {"", R"(,"table":1)", R"(,"table":1024)", R"(,"table":4294967295)"}) {
      SCOPED_TRACE(std::to_string(metric) + table);
      MakeEth0(metric);
      const Call call = WithSameRoutes(table);
      const auto added = Add(call);
      ASSERT_TRUE(added) << Describe(added.error());
      for (const std::string& prefix : GetParam().prefixes)
        EXPECT_EQ(Carrier(kernel_.state(), pod_, *IpPrefix::Parse(prefix)), "eth0") << prefix;
      EXPECT_NE(File("/run/railhead/nccl/c1/nccl.conf").find("NCCL_SOCKET_IFNAME==eth0\n"), std::string::npos)
          << File("/run/railhead/nccl/c1/nccl.conf");
      EXPECT_TRUE(Check(call));
      ASSERT_TRUE(Del(call));
    }
  }
}

// The rail's default route is of the other family, which the cluster network does not have.
TEST_P(BothFamiliesTest, TheSocketInterfaceIsNoRail) {
  MakeEth0(0);
  const bool six = std::string(GetParam().rail).find(':') != std::string::npos;
  const Call call{.config =
                      Device() + R"(,"ncclConfig":"required")" +
                      (six ? R"(,"gateway":"10.100.0.254","routes":["0.0.0.0/0"],)" + Ipam()
                           : R"(,"gateway":"fd00:100::fe","routes":["::/0"],)" + Ipam("fd00:100::10/64"))};
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_NE(File("/run/railhead/nccl/c1/nccl.conf").find("NCCL_SOCKET_IFNAME==eth0\n"), std::string::npos);
}

// The metrics were the tables' numbers: the entry of the attachment has them.
TEST_P(BothFamiliesTest, CheckOfAnAttachmentWithTheMetricsOfBefore) {
  MakeEth0(0);
  const Call call = WithSameRoutes();
  ASSERT_TRUE(Add(call));
  const Journal journal(sysfs_.root());
  JournalEntry entry = **journal.Find({"rail0", "c1", "net1"});
  const auto before = [](std::vector<Route>& routes) {
    int changed = 0;
    for (Route& route : routes) {
      if (route.metric != attachment::MainMetric(100)) continue;
      route.metric = 100;
      ++changed;
    }
    return changed;
  };
  const int count = static_cast<int>(GetParam().prefixes.size());
  EXPECT_EQ(before(entry.devices[0].addressing.routes), count);
  EXPECT_EQ(before(kernel_.state().Namespace(pod_)->routes), count);
  ASSERT_TRUE(journal.Write(entry));
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(call));
}

INSTANTIATE_TEST_SUITE_P(
    Families, BothFamiliesTest,
    ::testing::Values(Family{"10.244.0.5/24",
                             "10.244.0.1",
                             "10.100.0.10/24",
                             "10.100.0.254",
                             {"0.0.0.0/0", "10.0.0.0/8"},
                             {0, 100, 1024}},
                      // Without a metric the kernel gives 1024, as to the route of a router's advertisement.
                      Family{"fd10:244::5/64",
                             "fd10:244::1",
                             "fd00:100::10/64",
                             "fd00:100::fe",
                             {"::/0", "fd00::/8"},
                             {0, 1, 2048}}));

}  // namespace
}  // namespace railhead::testing

// What a node shows of its PFs, on a played kernel.
#include "deviceplugin/tools/fabric_suggest/observe.h"

#include <gtest/gtest.h>
#include <linux/rtnetlink.h>

#include <stdexcept>

#include "deviceplugin/services/lldp/lldp_report.h"
#include "netns/nl/vf_settings.h"
#include "tests/support/fake_kernel/fake_kernel.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/support/sysfs/machines.h"

namespace railhead::testing {
namespace {

constexpr const char* kPf0Address = "0000:43:00.0";
constexpr const char* kPf1Address = "0000:83:00.0";

class ObserveTest : public ::testing::Test {
 protected:
  ObserveTest() : kernel_(sysfs_) {
    sysfs_.Write("/etc/railhead/node-name", "gpu-001\n");
    kernel_.AddPf({.address = kPf0Address, .netdev = "pf0", .rdma = "mlx5_0", .mtu = 9000}, {.count = 4});
    kernel_.AddPf({.address = kPf1Address, .netdev = "pf1", .rdma = "mlx5_1", .up = false});
  }

  [[nodiscard]] fabric_suggest::NodeObservation Observed() {
    auto observation = fabric_suggest::Observe(sysfs_.root(), kernel_);
    if (!observation) throw std::runtime_error(Describe(observation.error()));  // ends this test alone
    return *std::move(observation);
  }
  [[nodiscard]] int IndexOf(const std::string& name) { return kernel_.state().Find(kHost, name)->link.index; }

  FakeSysfs sysfs_;
  FakeKernel kernel_;
};

TEST_F(ObserveTest, PfsInPciOrder) {
  const auto observation = Observed();
  EXPECT_EQ(observation.node, "gpu-001");
  EXPECT_EQ(observation.accelerators, 0);
  ASSERT_EQ(observation.pfs.size(), 2U);
  const auto& pf = observation.pfs[0];
  EXPECT_EQ(pf.device, kPf0Address);
  EXPECT_EQ(pf.netdev, "pf0");
  EXPECT_EQ(pf.rdma, "mlx5_0");
  EXPECT_TRUE(pf.is_rdma);
  EXPECT_EQ(pf.vfs, 4);
  EXPECT_GE(pf.most_vfs, 4);
  EXPECT_TRUE(pf.here);
  EXPECT_TRUE(pf.up);
  EXPECT_EQ(pf.mtu, 9000);
  EXPECT_FALSE(pf.default_route);
  EXPECT_TRUE(pf.networks.empty());
  EXPECT_EQ(pf.neighbor, std::nullopt);
  EXPECT_EQ(observation.pfs[1].device, kPf1Address);
  EXPECT_FALSE(observation.pfs[1].up);
  EXPECT_EQ(observation.notes, std::vector<std::string>{});
}

TEST_F(ObserveTest, AddressesAndRoutes) {
  kernel_.AddAddress(kHost, "pf0", "10.100.0.7/16");
  Route route;
  route.destination = *IpPrefix::Parse("10.96.0.0/11");
  route.gateway = IpAddress::Parse("10.100.255.254");
  route.link = IndexOf("pf0");
  route.table = 100;
  ASSERT_EQ(kernel_.state().AddRoute(kHost, route), 0);
  const auto observation = Observed();
  ASSERT_EQ(observation.pfs[0].networks.size(), 1U);
  const auto& network = observation.pfs[0].networks[0];
  EXPECT_EQ(network.vlan, std::nullopt);
  EXPECT_EQ(network.addresses, std::vector{*IpPrefix::Parse("10.100.0.7/16")}) << "not the link-local one";
  ASSERT_EQ(network.routes.size(), 1U) << "only routes through a gateway";
  EXPECT_EQ(network.routes[0].gateway, route.gateway);
  EXPECT_EQ(network.routes[0].table, 100U);
}

TEST_F(ObserveTest, TheDefaultRouteOnAVlanDevice) {
  kernel_.SetUp(kHost, "pf1", true);
  kernel_.AddVlan(kHost, "pf1.200", "pf1");
  kernel_.SetUp(kHost, "pf1.200", true);
  sysfs_.Write("/proc/net/vlan/config",
               "VLAN Dev name    | VLAN ID\n"
               "Name-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n"
               "pf1.200        | 200  | pf1\n");
  kernel_.AddAddress(kHost, "pf1.200", "10.7.0.1/24");
  kernel_.AddDefaultRoute(kHost, "pf1.200", "10.7.0.254");
  sysfs_.AddUpper("pf1", "pf1.200");
  const auto observation = Observed();
  EXPECT_FALSE(observation.pfs[0].default_route);
  EXPECT_TRUE(observation.pfs[1].default_route);
  ASSERT_EQ(observation.pfs[1].networks.size(), 1U);
  EXPECT_EQ(observation.pfs[1].networks[0].vlan, 200);
  EXPECT_EQ(observation.pfs[1].networks[0].netdev, "pf1.200");
  EXPECT_EQ(observation.pfs[1].networks[0].addresses.size(), 1U);
}

// A router that advertises on every rail takes no PF from the rails. The node's own address does.
TEST_F(ObserveTest, AdvertisedDefaultRoutes) {
  kernel_.SetUp(kHost, "pf1", true);
  for (const char* pf : {"pf0", "pf1"}) {
    Route advertised;
    advertised.destination = *IpPrefix::Parse("::/0");
    advertised.link = IndexOf(pf);
    advertised.metric = 1024;
    advertised.protocol = RTPROT_RA;
    kernel_.state().Namespace(kHost)->routes.push_back(advertised);
  }
  const auto carry = [this] {
    const auto observation = Observed();
    return std::pair(observation.pfs[0].default_route, observation.pfs[1].default_route);
  };
  EXPECT_EQ(carry(), std::pair(true, true)) << "the node has no others, and its address is not known";
  kernel_.AddAddress(kHost, "pf1", "2001:db8::7/64");
  EXPECT_EQ(carry(), std::pair(true, true));
  sysfs_.Write("/etc/railhead/node-address", "2001:db8::7\n");
  EXPECT_EQ(carry(), std::pair(false, true));
  sysfs_.Remove("/etc/railhead/node-address");
  kernel_.AddVeth(kHost, "eth0", kHost, "peer");
  kernel_.SetUp(kHost, "eth0", true);
  kernel_.AddAddress(kHost, "eth0", "192.0.2.7/24");
  kernel_.AddDefaultRoute(kHost, "eth0", "192.0.2.254");
  EXPECT_EQ(carry(), std::pair(false, false));
  // Each rail has one in a table of its own.
  for (const char* pf : {"pf0", "pf1"}) {
    Route own;
    own.destination = *IpPrefix::Parse("0.0.0.0/0");
    own.link = IndexOf(pf);
    own.table = 100U + static_cast<std::uint32_t>(own.link);
    kernel_.state().Namespace(kHost)->routes.push_back(own);
  }
  EXPECT_EQ(carry(), std::pair(false, false));
}

TEST_F(ObserveTest, AVlanOfVfsAndABond) {
  const auto route = kernel_.OpenRoute(*kernel_.HostNetns());
  ASSERT_TRUE(route);
  VfSettings vlan;
  vlan.vlan = VfVlan{.id = 100};
  ASSERT_TRUE((*route)->SetVf(IndexOf("pf0"), 0, vlan));
  kernel_.state().AddNetdev(kHost, "bond0").link.kind = "bond";
  kernel_.state().Find(kHost, "pf1")->link.master = IndexOf("bond0");
  const auto observation = Observed();
  EXPECT_EQ(observation.pfs[0].vf_vlan, 100);
  EXPECT_EQ(observation.pfs[1].vf_vlan, std::nullopt);
  EXPECT_EQ(observation.pfs[1].master, "bond0");
}

TEST_F(ObserveTest, NeighborsOfACurrentReport) {
  lldp::RailNeighbor rail;
  rail.rail = "rail0";
  rail.device = kPf0Address;
  rail.carrier = true;
  rail.cabling = lldp::Cabling::kUnchecked;
  rail.neighbor.emplace();
  rail.neighbor->neighbor.chassis = "02:00:00:00:00:09";
  rail.neighbor->neighbor.port = "swp7";
  rail.neighbor->neighbor.system_name = "leaf0";
  lldp::LldpReport report{"gpu-001", std::chrono::system_clock::now(), {rail}};
  ASSERT_TRUE(lldp::kLldpFile.Write(sysfs_.root(), report));
  const auto observation = Observed();
  ASSERT_TRUE(observation.pfs[0].neighbor);
  EXPECT_EQ(observation.pfs[0].neighbor->SwitchName(), "leaf0");
  EXPECT_EQ(observation.pfs[1].neighbor, std::nullopt);
  report.time -= std::chrono::hours(2);
  ASSERT_TRUE(lldp::kLldpFile.Write(sysfs_.root(), report));
  EXPECT_EQ(Observed().pfs[0].neighbor, std::nullopt) << "cables may be other ones by now";
}

TEST_F(ObserveTest, SoftRoceOnAPf) {
  FakeSysfs sysfs;
  FakeKernel kernel(sysfs);
  sysfs.Write("/etc/railhead/node-name", "gpu-001\n");
  kernel.AddPf({.address = kPf0Address, .netdev = "pf0", .rdma = ""}, {.count = 2});
  const auto without = fabric_suggest::Observe(sysfs.root(), kernel);
  ASSERT_TRUE(without) << Describe(without.error());
  EXPECT_FALSE(without->pfs.at(0).soft_roce);
  sysfs.Write("/sys/class/infiniband/rxe0/parent", "pf0\n");
  const auto with = fabric_suggest::Observe(sysfs.root(), kernel);
  ASSERT_TRUE(with) << Describe(with.error());
  EXPECT_TRUE(with->pfs.at(0).soft_roce);
  EXPECT_FALSE(with->pfs.at(0).is_rdma);
}

TEST_F(ObserveTest, ARefusedQuestionIsAnError) {
  kernel_.FailEvery("ListRoutes", 1);
  EXPECT_FALSE(fabric_suggest::Observe(sysfs_.root(), kernel_));
}

TEST(ObserveMachineTest, WhichPfsAreNearAccelerators) {
  FakeSysfs sysfs;
  FakeKernel kernel(sysfs);
  const FakeMachine machine = MakeDgxH100(sysfs);
  sysfs.Write("/etc/railhead/node-name", "dgx\n");
  const auto observation = fabric_suggest::Observe(sysfs.root(), kernel);
  ASSERT_TRUE(observation) << Describe(observation.error());
  EXPECT_EQ(observation->accelerators, 8);
  ASSERT_EQ(observation->pfs.size(), machine.nics.size());
  int near = 0;
  for (const auto& pf : observation->pfs) near += pf.path == "PXB" || pf.path == "PIX" ? 1 : 0;
  EXPECT_EQ(near, 8) << "the other four are for storage";
  EXPECT_FALSE(observation->pfs[0].here) << "the played kernel has no such link";
}

TEST(VlanConfigTest, Lines) {
  EXPECT_TRUE(fabric_suggest::ParseVlanConfig("").empty());
  const auto devices = fabric_suggest::ParseVlanConfig(
      "VLAN Dev name    | VLAN ID\n"
      "Name-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n"
      "pf0.100        | 100  | pf0\n"
      "storage        | 4094  | bond0\n"
      "wrong          | 4095  | pf0\n"
      "wrong | 7\n");
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].netdev, "pf0.100");
  EXPECT_EQ(devices[0].vlan, 100);
  EXPECT_EQ(devices[0].lower, "pf0");
  EXPECT_EQ(devices[1].netdev, "storage");
  EXPECT_EQ(devices[1].lower, "bond0");
}

}  // namespace
}  // namespace railhead::testing

#include "deviceplugin/pools/inventory.h"

#include "cni/state/journal.h"
#include "netns/base/node.h"
#include "tests/deviceplugin/two_rails.h"
#include "tests/fake/fake_kernel.h"

namespace railhead::testing {
namespace {

class InventoryTest : public TwoRails {};

TEST_F(InventoryTest, ListsPfsWithTheirVfsInOrder) {
  const auto inventory = Look();
  std::vector<std::string> ids;
  for (const NicFunction& function : inventory->functions) ids.push_back(function.id);
  std::vector<std::string> expected = {kPf0};
  expected.insert(expected.end(), vfs0_.begin(), vfs0_.end());
  expected.emplace_back(kPf1);
  expected.insert(expected.end(), vfs1_.begin(), vfs1_.end());
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(inventory->rail_pfs, (std::vector<std::string>{kPf0, kPf1}));
  const NicFunction* vf = inventory->Find(vfs1_[2]);
  ASSERT_NE(vf, nullptr);
  EXPECT_EQ(vf->vf_index, 2);
  EXPECT_EQ(vf->pf.ToString(), kPf1);
  EXPECT_EQ(vf->pf_name, "pf1");
  EXPECT_EQ(vf->numa_node, 1);
  EXPECT_EQ(vf->rdma_device, "pf1_rdma2");
  EXPECT_EQ(vf->link_type, "ether");
  EXPECT_TRUE(vf->is_rdma);
  EXPECT_EQ(inventory->Find(kPf0)->vf_count, 4);
  EXPECT_EQ(inventory->Find("0000:99:00.0"), nullptr);
}

TEST_F(InventoryTest, AVfInAPodKeepsThePfsKind) {
  sysfs_.MoveToPod(vfs0_[1]);
  sysfs_.Remove("/sys/bus/pci/devices/" + vfs0_[1] + "/infiniband");  // exclusive mode
  const auto inventory = Look();
  const NicFunction* vf = inventory->Find(vfs0_[1]);
  EXPECT_EQ(vf->link_type, "ether");
  EXPECT_TRUE(vf->is_rdma);
  EXPECT_EQ(vf->rdma_device, "");
}

TEST_F(InventoryTest, AnUnboundVfHasNoRdma) {
  sysfs_.Unbind(vfs0_[1]);
  const auto inventory = Look();
  EXPECT_FALSE(inventory->Find(vfs0_[1])->is_rdma);
  EXPECT_EQ(inventory->Find(vfs0_[1])->driver, "");
}

TEST_F(InventoryTest, WhatTheHostNeedsIsFoundThroughItsUppers) {
  sysfs_.AddVirtualNetdev("bond0");
  sysfs_.AddVirtualNetdev("br0");
  sysfs_.AddUpper("pf1", "bond0");
  sysfs_.AddUpper("bond0", "br0");
  const auto through_bridge = Look({{"br0"}});
  EXPECT_TRUE(through_bridge->Find(kPf1)->used_by_host);
  EXPECT_EQ(through_bridge->Find(kPf1)->used_by_host_through, "br0");
  EXPECT_FALSE(through_bridge->Find(kPf0)->used_by_host);
  EXPECT_FALSE(through_bridge->Find(vfs1_[0])->used_by_host) << "the VFs of such a PF may be given out";
  const auto direct = Look({{"pf0v3"}});
  EXPECT_TRUE(direct->Find(vfs0_[3])->used_by_host);
  EXPECT_FALSE(direct->Find(kPf0)->used_by_host);
}

TEST_F(InventoryTest, APfInAPodKeepsTheNameOfTheJournal) {
  sysfs_.MoveToPod(kPf1);
  EXPECT_EQ(Look()->Find(kPf1)->pf_name, "");
  JournalEntry entry;
  entry.key = {"net", "container", "net1"};
  entry.phase = Phase::kDone;
  entry.boot_id = BootId(root_).value();
  AttachedLink link;
  link.device = kPf1;
  link.host_name = "pf1";
  link.pod_name = "net1";
  entry.links.push_back(link);
  ASSERT_TRUE(Journal(root_).Write(entry));
  EXPECT_EQ(Look()->Find(kPf1)->pf_name, "pf1");
}

TEST(HostNetwork, IsWhereDefaultRoutesAndTheNodesAddressesAre) {
  FakeSysfs sysfs;
  FakeKernel kernel(sysfs);
  (void)kernel.AddPf({.address = kPf0, .netdev = "pf0"});
  (void)kernel.AddPf({.address = kPf1, .netdev = "pf1"});
  (void)kernel.AddPf({.address = "0000:c3:00.0", .netdev = "pf2"});
  const auto host = kernel.HostNetns();
  ASSERT_TRUE(host);
  const auto route = kernel.OpenRoute(*host);
  ASSERT_TRUE(route);
  const int pf0 = (*route)->FindLink("pf0").value().value().index;
  const int pf1 = (*route)->FindLink("pf1").value().value().index;
  ASSERT_TRUE((*route)->AddAddress(pf0, *IpPrefix::Parse("192.0.2.10/24")));
  EXPECT_EQ(ReadHostNetwork(**route).value().netdevs, (std::set<std::string>{"pf0"})) << "its address";
  ASSERT_TRUE((*route)->DeleteAddress(pf0, *IpPrefix::Parse("192.0.2.10/24")).value());
  ASSERT_TRUE((*route)->AddAddress(pf0, *IpPrefix::Parse("169.254.0.10/16")));
  ASSERT_TRUE((*route)->AddAddress(pf1, *IpPrefix::Parse("169.254.1.10/24")));
  EXPECT_TRUE(ReadHostNetwork(**route).value().netdevs.empty()) << "link-local addresses do not count";

  Route default_route;
  default_route.gateway = IpAddress::Parse("169.254.0.1");
  default_route.link = pf0;
  ASSERT_TRUE((*route)->AddRoute(default_route));
  EXPECT_EQ(ReadHostNetwork(**route).value().netdevs, (std::set<std::string>{"pf0"})) << "the default route";

  // A rail's own routing table on the host does not make its NIC the host's.
  Route of_rail = default_route;
  of_rail.link = pf1;
  of_rail.gateway = IpAddress::Parse("169.254.1.1");
  of_rail.table = 101;
  ASSERT_TRUE((*route)->AddRoute(of_rail));
  EXPECT_EQ(ReadHostNetwork(**route).value().netdevs, (std::set<std::string>{"pf0"}));
}

// Pods come and go while the host's devices are listed.
TEST(HostNetwork, DevicesThatVanishMeanwhileAreNobodys) {
  FakeSysfs sysfs;
  FakeKernel kernel(sysfs);
  (void)kernel.AddPf({.address = kPf0, .netdev = "pf0"});
  (void)kernel.AddPf({.address = kPf1, .netdev = "pf1"});
  const auto route = kernel.OpenRoute(*kernel.HostNetns());
  ASSERT_TRUE(route);
  Route default_route;
  default_route.gateway = IpAddress::Parse("169.254.0.1");
  default_route.link = (*route)->FindLink("pf1").value().value().index;
  ASSERT_TRUE((*route)->AddAddress(default_route.link, *IpPrefix::Parse("169.254.0.10/16")));
  ASSERT_TRUE((*route)->AddRoute(default_route));
  kernel.FailEvery("ListAddresses", ENODEV);
  const auto host = ReadHostNetwork(**route);
  ASSERT_TRUE(host) << Describe(host.error());
  EXPECT_EQ(host->netdevs, (std::set<std::string>{"pf1"})) << "what is needed for its route is seen without";
  kernel.FailEvery("ListAddresses", EPERM);
  EXPECT_FALSE(ReadHostNetwork(**route)) << "what cannot be told must not be taken for unused";
}

}  // namespace
}  // namespace railhead::testing

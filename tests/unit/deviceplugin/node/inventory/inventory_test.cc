#include "deviceplugin/node/inventory/inventory.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>

#include "cni/state/journal.h"
#include "deviceplugin/node/inventory/pf_memory.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "tests/support/daemon/two_rails.h"
#include "tests/support/fake_kernel/fake_kernel.h"

namespace railhead::testing {
namespace {

class InventoryTest : public TwoRails {};

TEST_F(InventoryTest, ListsPfsWithTheirVfsInOrder) {
  const auto inventory = Discover();
  std::vector<std::string> ids;
  for (const inventory::NicFunction& function : inventory->functions) ids.push_back(function.id);
  std::vector<std::string> expected = {kPf0};
  expected.insert(expected.end(), vfs0_.begin(), vfs0_.end());
  expected.emplace_back(kPf1);
  expected.insert(expected.end(), vfs1_.begin(), vfs1_.end());
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(inventory->rail_pfs, (std::vector<std::string>{kPf0, kPf1}));
  const inventory::NicFunction* vf = inventory->Find(vfs1_[2]);
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
  const auto inventory = Discover();
  const inventory::NicFunction* vf = inventory->Find(vfs0_[1]);
  EXPECT_EQ(vf->link_type, "ether");
  EXPECT_TRUE(vf->is_rdma);
  EXPECT_EQ(vf->rdma_device, "");
}

TEST_F(InventoryTest, AnUnboundVfHasNoRdma) {
  sysfs_.Unbind(vfs0_[1]);
  const auto inventory = Discover();
  EXPECT_FALSE(inventory->Find(vfs0_[1])->is_rdma);
  EXPECT_EQ(inventory->Find(vfs0_[1])->driver, "");
}

TEST_F(InventoryTest, WhatTheHostNeedsIsFoundThroughItsUppers) {
  sysfs_.AddVirtualNetdev("bond0");
  sysfs_.AddVirtualNetdev("br0");
  sysfs_.AddUpper("pf1", "bond0");
  sysfs_.AddUpper("bond0", "br0");
  const auto through_bridge = Discover({{{"br0", "carries its address"}}});
  EXPECT_EQ(through_bridge->Find(kPf1)->host_use, "carries its address (br0)");
  EXPECT_EQ(through_bridge->Find(kPf0)->host_use, "");
  EXPECT_EQ(through_bridge->Find(vfs1_[0])->host_use, "") << "the VFs of such a PF may be given out";
  const auto direct = Discover({{{"pf0v3", "carries its address"}}});
  EXPECT_EQ(direct->Find(vfs0_[3])->host_use, "carries its address (pf0v3)");
  EXPECT_EQ(direct->Find(kPf0)->host_use, "");
}

TEST_F(InventoryTest, APfInAPodKeepsTheNameOfTheJournal) {
  sysfs_.MoveToPod(kPf1);
  EXPECT_EQ(Discover()->Find(kPf1)->pf_name, "");
  JournalEntry entry;
  entry.key = {"net", "container", "net1"};
  entry.phase = Phase::kDone;
  entry.boot_id = BootId(root_).value();
  AttachedDevice link;
  link.device = kPf1;
  link.before.name = "pf1";
  link.pod_name = "net1";
  entry.devices.push_back(link);
  ASSERT_TRUE(Journal(root_).Write(entry));
  EXPECT_EQ(Discover()->Find(kPf1)->pf_name, "pf1");
}

// Another CNI plugin has moved it, without a journal entry.
TEST_F(InventoryTest, APfInAPodKeepsWhatWasSeenOfIt) {
  ASSERT_TRUE(inventory::PfMemory(root_).Remember(*Discover()));
  sysfs_.MoveToPod(kPf1);
  sysfs_.Remove(std::string("/sys/bus/pci/devices/") + kPf1 + "/infiniband");  // exclusive mode
  const auto away = Discover();
  const inventory::NicFunction* pf = away->Find(kPf1);
  EXPECT_EQ(pf->pf_name, "pf1");
  EXPECT_EQ(pf->link_type, "ether");
  EXPECT_TRUE(pf->is_rdma);
  EXPECT_EQ(pf->rdma_device, "") << "that is not here";
  EXPECT_EQ(away->Find(vfs1_[0])->pf_name, "pf1");
  EXPECT_EQ(away->Find(kPf0)->pf_name, "pf0");
  // The next discovery keeps the remembered PFs.
  ASSERT_TRUE(inventory::PfMemory(root_).Remember(*away));
  EXPECT_EQ(*Discover()->Find(kPf1), *pf);
}

TEST_F(InventoryTest, ANameThatAnotherDeviceHasByNowIsNotThePfs) {
  ASSERT_TRUE(inventory::PfMemory(root_).Remember(*Discover()));
  sysfs_.MoveToPod(kPf1);
  sysfs_.AddPf({.address = "0000:c3:00.0", .netdev = "pf1"});
  const auto away = Discover();
  EXPECT_EQ(away->Find(kPf1)->pf_name, "");
  EXPECT_EQ(away->Find("0000:c3:00.0")->pf_name, "pf1");
  EXPECT_EQ(away->Find(kPf1)->link_type, "ether");
  ASSERT_TRUE(inventory::PfMemory(root_).Remember(*away));
  sysfs_.MoveToPod("0000:c3:00.0");
  sysfs_.Unbind("0000:c3:00.0");
  EXPECT_EQ(Discover()->Find(kPf1)->pf_name, "pf1");
}

TEST_F(InventoryTest, WhatWasSeenOfAPfGoesWithItsDriverItsKindAndItself) {
  ASSERT_TRUE(inventory::PfMemory(root_).Remember(*Discover()));
  const std::string driver = std::string("/sys/bus/pci/devices/") + kPf1 + "/driver";
  sysfs_.MoveToPod(kPf1);
  sysfs_.Link(driver, "../../../bus/pci/drivers/vfio-pci");
  EXPECT_EQ(Discover()->Find(kPf1)->pf_name, "") << "another driver";
  sysfs_.Link(driver, "../../../bus/pci/drivers/mlx5_core");
  EXPECT_EQ(Discover()->Find(kPf1)->pf_name, "pf1");
  sysfs_.Write("/sys/class/infiniband/mlx5_1/ports/1/link_layer", "InfiniBand\n");
  EXPECT_EQ(Discover()->Find(kPf1)->pf_name, "") << "another kind";
  sysfs_.Write("/sys/class/infiniband/mlx5_1/ports/1/link_layer", "Ethernet\n");
  // Gone from the bus for one look.
  inventory::Inventory without = *Discover();
  std::erase_if(without.functions,
                [](const inventory::NicFunction& function) { return function.pf.ToString() == kPf1; });
  ASSERT_TRUE(inventory::PfMemory(root_).Remember(without));
  EXPECT_EQ(Discover()->Find(kPf1)->pf_name, "");
}

TEST_F(InventoryTest, AMemoryThatCannotBeReadIsNone) {
  for (const char* text : {"", "{", "[]", R"({"version": 2, "pfs": []})",
                           R"({"version": 1, "pfs": [{"pf": "0000:83:00.0", "driver": 7}]})"}) {
    sysfs_.Write("/run/railhead/pfs.json", text);
    sysfs_.MoveToPod(kPf1);
    EXPECT_EQ(Discover()->Find(kPf1)->pf_name, "") << text;
    EXPECT_TRUE(inventory::PfMemory(root_).Remember(*Discover())) << text;
  }
  EXPECT_EQ(Discover()->Find(kPf0)->pf_name, "pf0");
}

// The states of an attribute that a read can meet while its device comes or goes, or is broken.
class BrokenFunctionTest : public InventoryTest {
 protected:
  using Break = void (*)(FakeSysfs& sysfs, const std::string& path);
  static constexpr std::array<Break, 4> kBreaks = {
      // The read fails as it does for a device that is being unregistered (netdev_show). Reading the speed of
      // lo always fails.
      [](FakeSysfs& sysfs, const std::string& path) {
        std::filesystem::create_symlink("/sys/class/net/lo/speed", sysfs.directory() + path);
      },
      [](FakeSysfs& sysfs, const std::string& path) { sysfs.Remove(path); },
      [](FakeSysfs& sysfs, const std::string& path) { sysfs.Write(path + "/x", ""); },  // EISDIR
      [](FakeSysfs& sysfs, const std::string& path) { sysfs.Write(path, "\x01?\n"); }};

  // Paths of the attributes below a function's directory.
  std::vector<std::string> AttributesOf(const std::string& bdf, const std::string& below = "") {
    std::vector<std::string> paths;
    const std::string top = sysfs_.directory();
    const auto device = std::filesystem::canonical(top + "/sys/bus/pci/devices/" + bdf).string() + below;
    if (!std::filesystem::exists(device)) return paths;
    for (const auto& file : std::filesystem::recursive_directory_iterator(device)) {
      if (file.is_regular_file() && !file.is_symlink())
        paths.push_back(file.path().string().substr(std::filesystem::canonical(top).string().size()));
    }
    return paths;
  }
  // Breaks each attribute in each way, one at a time. Functions of `others` are still listed.
  int BreakEach(const std::vector<std::string>& attributes, const std::vector<std::string>& others) {
    const auto whole = Discover();
    int broken = 0;
    for (const std::string& path : attributes) {
      const auto text = ReadFile(sysfs_.directory() + path);
      for (const Break how : kBreaks) {
        // Kernels without NUMA lack the attribute. Discovery takes the PF's other VFs to be like the first.
        if (how == kBreaks[1] && path.ends_with("/numa_node")) continue;
        sysfs_.Remove(path);
        how(sysfs_, path);
        SCOPED_TRACE(path);
        const auto found = inventory::Discover(root_, {});
        EXPECT_TRUE(found) << Describe(found.error());
        if (!found) return broken;
        for (const std::string& id : others) {
          const inventory::NicFunction* function = (*found)->Find(id);
          EXPECT_TRUE(function != nullptr && *function == *whole->Find(id)) << id;
        }
        EXPECT_EQ((*found)->rail_pfs, whole->rail_pfs) << "positions mean the same PFs";
        sysfs_.Remove(path);
        sysfs_.Write(path, **text);
        ++broken;
      }
    }
    return broken;
  }
};

TEST_F(BrokenFunctionTest, AVfCostsOnlyItself) {
  const auto whole = Discover();
  for (const std::string& vf : {vfs0_[0], vfs0_[2], vfs1_[3]}) {
    std::vector<std::string> others;
    for (const inventory::NicFunction& function : whole->functions) {
      if (function.id != vf && function.id != whole->Find(vf)->pf.ToString()) others.push_back(function.id);
    }
    EXPECT_GT(BreakEach(AttributesOf(vf), others), 40) << vf;
  }
}

TEST_F(BrokenFunctionTest, ThePortOfAPfCostsOnlyItsRail) {
  auto attributes = AttributesOf(kPf0, "/net");
  for (const std::string& path : AttributesOf(kPf0, "/infiniband")) attributes.push_back(path);
  std::vector<std::string> others = vfs1_;
  others.emplace_back(kPf1);
  EXPECT_GT(BreakEach(attributes, others), 20);
}

// Discovery does not report a device that is gone, but does report a broken one.
TEST_F(BrokenFunctionTest, WhatGoesIsNotReportedAndWhatIsBrokenIs) {
  const std::string type = "/sys/class/net/pf0v1/type";
  sysfs_.Remove(type);
  kBreaks[0](sysfs_, type);
  auto inventory = Discover();
  EXPECT_NE(inventory->Find(vfs0_[1]), nullptr);
  EXPECT_TRUE(inventory->unreadable.empty());
  sysfs_.Remove(type);
  kBreaks[2](sysfs_, type);
  inventory = Discover();
  EXPECT_EQ(inventory->Find(vfs0_[1]), nullptr);
  ASSERT_EQ(inventory->unreadable.size(), 1U);
  EXPECT_EQ(inventory->unreadable.begin()->first.ToString(), vfs0_[1]);
}

// The rule of ADD (netns/nl/host_use.h): a device that railheadd offers and ADD refuses would fail every pod.
class HostNetworkTest : public ::testing::Test {
 protected:
  HostNetworkTest() {
    (void)kernel_.AddPf({.address = kPf0, .netdev = "pf0"});
    (void)kernel_.AddPf({.address = kPf1, .netdev = "pf1"});
    pf0_ = (*route_)->FindLink("pf0").value().value().index;
  }
  std::map<std::string, std::string> Netdevs() {
    return inventory::ReadHostNetwork(sysfs_.root(), **route_).value().netdevs;
  }

  using Uses = std::map<std::string, std::string>;
  FakeSysfs sysfs_;
  FakeKernel kernel_{sysfs_};
  Result<std::unique_ptr<RouteApi>> route_ = kernel_.OpenRoute(*kernel_.HostNetns());
  int pf0_ = 0;
};

TEST_F(HostNetworkTest, IsWhereSomebodyHasSetAnAddressARouteOrARule) {
  for (const char* address : {"192.0.2.10/24", "169.254.0.10/16", "fd00::7/64"}) {
    ASSERT_TRUE((*route_)->AddAddress(pf0_, *IpPrefix::Parse(address)));
    EXPECT_EQ(Netdevs(), (Uses{{"pf0", std::string("carries the host's address ") + address}}));
    ASSERT_TRUE((*route_)->DeleteAddress(pf0_, *IpPrefix::Parse(address)).value());
  }
  FakeNamespace& state = *kernel_.state().Namespace(kHost);
  for (const std::uint32_t table : {254U, 101U}) {
    Route of_host;
    of_host.destination = *IpPrefix::Parse("0.0.0.0/0");
    of_host.link = pf0_;
    of_host.table = table;
    state.routes = {of_host};
    EXPECT_EQ(Netdevs(), (Uses{{"pf0", "carries the host's default route"}})) << "table " << table;
  }
  state.routes.clear();
  for (std::string Rule::*name : {&Rule::iif, &Rule::oif}) {
    Rule rule;
    rule.family = AF_INET;
    rule.*name = "pf0";
    rule.table = 100;
    state.rules = {rule};
    EXPECT_TRUE(Netdevs().contains("pf0"));
  }
}

// Every host and pod on the network can send a router advertisement.
TEST_F(HostNetworkTest, IsNotWhereARouterAdvertises) {
  kernel_.AddAddress(kHost, "pf1", "192.0.2.10/24");
  kernel_.AddDefaultRoute(kHost, "pf1", "192.0.2.254");
  const IpPrefix prefix = *IpPrefix::Parse("2001:db8::7/64");
  ASSERT_TRUE((*route_)->AddAddress(pf0_, prefix));
  kernel_.state().Find(kHost, "pf0")->address_flags[prefix].flags = IFA_F_MANAGETEMPADDR;
  Route advertised;
  advertised.destination = *IpPrefix::Parse("::/0");
  advertised.link = pf0_;
  advertised.metric = 1024;
  advertised.protocol = RTPROT_RA;
  kernel_.state().Namespace(kHost)->routes.push_back(advertised);
  const Uses only_pf1 = {{"pf1", "carries the host's address 192.0.2.10/24"}};
  EXPECT_EQ(Netdevs(), only_pf1);
  sysfs_.Write("/etc/railhead/node-address", "2001:db8::7\n");
  EXPECT_EQ(Netdevs(), (Uses{{"pf0", "carries the node's address 2001:db8::7/64"}, *only_pf1.begin()}));
  sysfs_.Write("/etc/railhead/node-address", "not one\n");
  EXPECT_FALSE(inventory::ReadHostNetwork(sysfs_.root(), **route_))
      << "what is unknown is not taken for unused";
}

// Not the many ports that are pods' ends of the cluster network.
TEST_F(HostNetworkTest, IsAPortOfABridge) {
  kernel_.AddVeth(kHost, "veth1", kHost, "peer");
  const int bridge = (*route_)->FindLink("peer").value().value().index;
  kernel_.state().Find(kHost, "pf0")->link.master = bridge;
  kernel_.state().Find(kHost, "veth1")->link.master = bridge;
  EXPECT_EQ(Netdevs(), (Uses{{"pf0", "belongs to a bond or bridge of the host"}}));
}

TEST_F(HostNetworkTest, ANetworkManagerIsNamed) {
  const IpPrefix prefix = *IpPrefix::Parse("192.0.2.10/24");
  ASSERT_TRUE((*route_)->AddAddress(pf0_, prefix));
  kernel_.state().Find(kHost, "pf0")->address_flags[prefix].flags = 0;
  const std::string leased = "carries the host's address 192.0.2.10/24 of DHCP or a network manager";
  EXPECT_EQ(Netdevs(), (Uses{{"pf0", leased}}));
  sysfs_.Write("/run/NetworkManager/devices/" + std::to_string(pf0_), "[device]\nmanaged=true\n");
  EXPECT_EQ(Netdevs(), (Uses{{"pf0", leased + ", managed by NetworkManager"}}));
}

TEST_F(HostNetworkTest, WhatCannotBeReadIsNotTakenForUnused) {
  for (const char* call : {"ListAddresses", "ListRoutes", "ListRules", "ListLinks"}) {
    kernel_.FailEvery(call, EPERM);
    EXPECT_FALSE(inventory::ReadHostNetwork(sysfs_.root(), **route_)) << call;
    kernel_.StopFailing();
  }
}

}  // namespace
}  // namespace railhead::testing

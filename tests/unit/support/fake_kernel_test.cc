// The fake behaves like Linux. These tests state behaviour that was observed on real SR-IOV VFs, or read in
// the kernel's source as noted.
#include "tests/support/fake_kernel/fake_kernel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <thread>

#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;

constexpr const char* kPf = "0000:43:00.0";

class FakeKernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    vfs_ = kernel_.AddPf({.address = kPf, .netdev = "pf0", .rdma = "mlx5_0"},
                         {.count = 2, .rdma = "mlx5_{pf}v{n}"});
    pod_ = kernel_.AddNamespace("pod");
  }
  std::unique_ptr<RouteApi> Route(const std::string& path) {
    auto ns = path == kHost ? kernel_.HostNetns() : kernel_.OpenNetns(path);
    return std::move(*kernel_.OpenRoute(*ns));
  }
  Link Find(const std::string& ns, const std::string& name) { return Route(ns)->FindLink(name)->value(); }
  NetNs Pod() { return std::move(*kernel_.OpenNetns(pod_)); }
  std::vector<GidEntry> Gids(const std::string& device) {
    return kernel_.ReadGids(*kernel_.HostNetns(), device)->value();
  }

  FakeSysfs sysfs_;
  FakeKernel kernel_{sysfs_};
  std::vector<std::string> vfs_;
  std::string pod_;
};

TEST_F(FakeKernelTest, MovesLinkAndKeepsSysfsInStep) {
  const auto bdf = *PciAddress::Parse(vfs_[0]);
  EXPECT_EQ(*NetdevsOf(sysfs_.root(), bdf), std::vector<std::string>{"pf0v0"});
  const auto before = kernel_.Snapshot();
  const int index = Find(kHost, "pf0v0").index;
  ASSERT_TRUE(Route(kHost)->MoveLink(index, Pod(), "net1", 9000));
  EXPECT_FALSE(Route(kHost)->FindLink("pf0v0")->has_value());
  EXPECT_EQ(Find(pod_, "net1").mtu, 9000);
  EXPECT_EQ(Find(pod_, "net1").parent_device, vfs_[0]);
  EXPECT_TRUE(NetdevsOf(sysfs_.root(), bdf)->empty());
  EXPECT_EQ(RdmaDevicesOf(sysfs_.root(), bdf)->size(), 1U) << "shared mode: the host sees it";
  ASSERT_TRUE(Route(pod_)->MoveLink(Find(pod_, "net1").index, *kernel_.HostNetns(), "pf0v0", 1500));
  EXPECT_EQ(kernel_.Snapshot(), before);
  EXPECT_EQ(*NetdevsOf(sysfs_.root(), bdf), std::vector<std::string>{"pf0v0"});
}

TEST_F(FakeKernelTest, MoveIsNotAtomic) {
  kernel_.AddVeth(pod_, "net1", kHost, "veth0");
  const int index = Find(kHost, "pf0v0").index;
  const auto taken = Route(kHost)->MoveLink(index, Pod(), "net1", {});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().sys_errno, EEXIST);
  EXPECT_TRUE(Route(pod_)->FindLink("pf0v0")->has_value()) << "it is there, under its old name";
  const auto refused = Route(kHost)->MoveLink(Find(kHost, "pf0v1").index, Pod(), "net2", 99999);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(Route(pod_)->FindLink("pf0v1")->has_value());
}

TEST_F(FakeKernelTest, RemovedNamespaceReturnsDevices) {
  ASSERT_TRUE(Route(kHost)->MoveLink(Find(kHost, "pf0v0").index, Pod(), "net1", {}));
  ASSERT_TRUE(Route(kHost)->MoveLink(Find(kHost, "pf0v1").index, Pod(), "net2", {}));
  kernel_.AddVeth(kHost, "net1", kHost, "peer");
  kernel_.AddVeth(pod_, "eth0", kHost, "veth0");
  const int index = Find(pod_, "net1").index;
  kernel_.RemoveNamespace(pod_);
  EXPECT_EQ(Find(kHost, "dev" + std::to_string(index)).parent_device, vfs_[0]) << "net1 was taken";
  EXPECT_EQ(Find(kHost, "net2").parent_device, vfs_[1]) << "it keeps its name of the pod";
  EXPECT_FALSE(Route(kHost)->FindLink("veth0")->has_value()) << "a veth goes with its peer";
  EXPECT_EQ(kernel_.OpenNetns(pod_).error().code, ErrorCode::kNotFound);
}

// drivers/infiniband/core: K default entries, then addresses, v1 before v2.
TEST_F(FakeKernelTest, GidTableOfTwoRoceTypes) {
  kernel_.AddAddress(kHost, "pf0v0", "10.0.0.7/24");
  const auto table = Gids("mlx5_pf0v0");
  ASSERT_EQ(table.size(), 4U) << Describe(table);
  EXPECT_EQ(FindGid(table, *IpAddress::Parse("10.0.0.7"), GidType::kRoceV2, "pf0v0")->index, 3);
  ASSERT_TRUE(Route(kHost)->MoveLink(Find(kHost, "pf0v0").index, Pod(), "net1", {}));
  EXPECT_EQ(Gids("mlx5_pf0v0").size(), 2U) << "a move leaves the default GIDs";
}

TEST_F(FakeKernelTest, AVlanStaysWhereItIsAndGoesWithItsLower) {
  ASSERT_TRUE(Route(kHost)->MoveLink(Find(kHost, "pf0v0").index, Pod(), "net1", {}));
  kernel_.AddVlan(pod_, "net1.7", "net1");
  kernel_.AddVlan(pod_, "net1.7.8", "net1.7");
  ASSERT_TRUE(Route(pod_)->MoveLink(Find(pod_, "net1").index, *kernel_.HostNetns(), "pf0v0", {}));
  const auto uppers = Route(pod_)->ListUppers(Find(kHost, "pf0v0").index, *kernel_.HostNetns()).value();
  ASSERT_EQ(uppers.size(), 1U);
  EXPECT_EQ(uppers[0], Find(pod_, "net1.7"));
  EXPECT_TRUE(Route(pod_)->DeleteLink(uppers[0].index).value());
  EXPECT_FALSE(Route(pod_)->DeleteLink(uppers[0].index).value());
  EXPECT_EQ(kernel_.state().Find(pod_, "net1.7.8"), nullptr);
}

TEST_F(FakeKernelTest, LinkLocalTakesSlotsUnlessPrevented) {
  kernel_.state().default_addr_gen_mode = AddrGenMode::kStablePrivacy;
  ASSERT_TRUE(Route(kHost)->MoveLink(Find(kHost, "pf0v0").index, Pod(), "net1", {}));
  ASSERT_TRUE(Route(kHost)->MoveLink(Find(kHost, "pf0v1").index, Pod(), "net2", {}));
  LinkChange up;
  up.up = true;
  ASSERT_TRUE(Route(pod_)->ChangeLink(Find(pod_, "net1").index, up));
  up.addr_gen_mode = AddrGenMode::kNone;
  ASSERT_TRUE(Route(pod_)->ChangeLink(Find(pod_, "net2").index, up));
  kernel_.AddAddress(pod_, "net1", "10.0.0.1/24");
  kernel_.AddAddress(pod_, "net2", "10.0.1.1/24");
  EXPECT_EQ(FindGid(Gids("mlx5_pf0v0"), *IpAddress::Parse("10.0.0.1"), GidType::kRoceV2, "net1")->index, 5);
  EXPECT_EQ(FindGid(Gids("mlx5_pf0v1"), *IpAddress::Parse("10.0.1.1"), GidType::kRoceV2, "net2")->index, 3);
}

TEST_F(FakeKernelTest, GidsComeLateWhenAsked) {
  kernel_.state().gid_delay = 2;
  kernel_.AddAddress(kHost, "pf0v0", "10.0.0.7/24");
  EXPECT_EQ(Gids("mlx5_pf0v0").size(), 2U);
  EXPECT_EQ(Gids("mlx5_pf0v0").size(), 4U);
}

TEST_F(FakeKernelTest, ExclusiveModeHidesAndRenumbers) {
  kernel_.SetRdmaMode(RdmaNetnsMode::kExclusive);
  auto host = std::move(*kernel_.OpenRdma(*kernel_.HostNetns()));
  EXPECT_EQ(*UverbsOf(sysfs_.root(), "mlx5_pf0v1"), "uverbs2");
  ASSERT_TRUE(host->MoveDevice("mlx5_pf0v0", Pod()));
  ASSERT_TRUE(host->MoveDevice("mlx5_pf0v1", Pod()));
  EXPECT_EQ(host->ListDevices()->size(), 1U);
  EXPECT_EQ((*kernel_.OpenRdma(Pod()))->ListDevices()->size(), 2U);
  EXPECT_FALSE(kernel_.ReadGids(*kernel_.HostNetns(), "mlx5_pf0v0")->has_value());
  EXPECT_TRUE(kernel_.ReadGids(Pod(), "mlx5_pf0v0")->has_value());
  EXPECT_TRUE(RdmaDevicesOf(sysfs_.root(), *PciAddress::Parse(vfs_[0]))->empty());
  kernel_.RemoveNamespace(pod_);
  EXPECT_EQ(host->ListDevices()->size(), 3U);
}

TEST_F(FakeKernelTest, SharedModeRefusesMoves) {
  auto host = std::move(*kernel_.OpenRdma(*kernel_.HostNetns()));
  EXPECT_EQ(host->MoveDevice("mlx5_pf0v0", Pod()).error().sys_errno, EOPNOTSUPP);
}

TEST_F(FakeKernelTest, RxeNamesAreNodeWideAndGoWithTheMove) {
  auto host = std::move(*kernel_.OpenRdma(*kernel_.HostNetns()));
  ASSERT_TRUE(host->AddRxe("rxe0", "pf0v0"));
  EXPECT_EQ(*RxeParentOf(sysfs_.root(), "rxe0"), "pf0v0");
  auto pod = std::move(*kernel_.OpenRdma(Pod()));
  ASSERT_TRUE(Route(kHost)->MoveLink(Find(kHost, "pf0v1").index, Pod(), "net1", {}));
  EXPECT_EQ(pod->AddRxe("rxe0", "net1").error().code, ErrorCode::kExists);
  ASSERT_TRUE(Route(kHost)->MoveLink(Find(kHost, "pf0v0").index, Pod(), "net2", {}));
  EXPECT_FALSE(*pod->DeleteRxe("rxe0")) << "the move took it";
  EXPECT_FALSE(*UverbsOf(sysfs_.root(), "rxe0"));
}

TEST_F(FakeKernelTest, VfSettingsAreCheckedInTheKernelsOrder) {
  const int pf = Find(kHost, "pf0").index;
  VfSettings change;
  change.vlan = {{100, 8}};
  change.mac = MacAddress::Parse("02:00:00:00:00:99");
  EXPECT_EQ(Route(kHost)->SetVf(pf, 0, change).error().sys_errno, EINVAL);
  EXPECT_EQ(Route(kHost)->GetVf(pf, 0)->value().mac, *change.mac) << "the MAC came before the VLAN";
  EXPECT_FALSE(Route(kHost)->GetVf(pf, 7)->has_value());
}

TEST_F(FakeKernelTest, IgbvfTakesItsMacWhenItBinds) {
  const auto vfs = kernel_.AddPf(
      {.address = "0000:83:00.0", .netdev = "pf1", .driver = {"igbvf", false, false, false, true, "eth"}},
      {.count = 1});
  const int pf = Find(kHost, "pf1").index;
  const auto old = Find(kHost, "pf1v0");
  VfSettings change;
  change.mac = MacAddress::Parse("02:00:00:00:00:99");
  ASSERT_TRUE(Route(kHost)->SetVf(pf, 0, change));
  EXPECT_EQ(Find(kHost, "pf1v0").mac, old.mac);
  LinkChange other;
  other.mac = MacAddress::Parse("02:00:00:00:00:98");
  EXPECT_FALSE(Route(kHost)->ChangeLink(old.index, other));
  ASSERT_TRUE(kernel_.RebindDriver(vfs[0]));
  EXPECT_EQ(Find(kHost, "eth0").mac, *change.mac);
  EXPECT_NE(Find(kHost, "eth0").index, old.index);
}

TEST_F(FakeKernelTest, RoutesFollowLinksAndAddresses) {
  kernel_.AddAddress(kHost, "pf0v0", "10.0.0.7/24");
  auto route = Route(kHost);
  EXPECT_TRUE(route->ListRoutes(AF_INET, kTableMain)->empty()) << "the link is down";
  kernel_.SetUp(kHost, "pf0v0", true);
  EXPECT_EQ(route->ListRoutes(AF_INET, kTableMain)->size(), 1U);
  kernel_.AddDefaultRoute(kHost, "pf0v0", "10.0.0.254");
  railhead::Route unreachable;
  unreachable.destination = *IpPrefix::Parse("10.9.0.0/16");
  unreachable.gateway = IpAddress::Parse("10.8.0.1");
  unreachable.link = Find(kHost, "pf0v0").index;
  EXPECT_EQ(route->AddRoute(unreachable).error().sys_errno, ENETUNREACH);
  kernel_.SetUp(kHost, "pf0v0", false);
  EXPECT_TRUE(route->ListRoutes(AF_INET, kTableMain)->empty());
}

TEST_F(FakeKernelTest, FailsAsConfigured) {
  auto route = Route(kHost);
  kernel_.FailCall(2, EIO);
  EXPECT_TRUE(route->ListLinks());
  EXPECT_EQ(route->ListLinks().error().sys_errno, EIO);
  EXPECT_TRUE(route->ListLinks());
  kernel_.FailEvery("ListLinks", EPERM);
  EXPECT_FALSE(route->ListLinks());
  EXPECT_NE(kernel_.Log().find("injected"), std::string::npos);
  kernel_.StopFailing();
  EXPECT_TRUE(route->ListLinks());
}

TEST_F(FakeKernelTest, ParksACaller) {
  auto route = Route(kHost);
  bool returned = false;
  kernel_.ParkAt(1);
  std::thread([&, shared = std::shared_ptr<RouteApi>(std::move(route))] {
    (void)shared->ListLinks();
    returned = true;
  }).detach();
  EXPECT_TRUE(kernel_.AwaitParked([] { return false; }));
  EXPECT_FALSE(returned);
  EXPECT_TRUE(Route(kHost)->ListLinks());
}

// Neighbours, address conflicts and processes of the fake.

constexpr const char* kOtherPf = "0000:83:00.0";
constexpr milliseconds kBudget{200};

class FakeNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    kernel_.AddPf({.address = kPf, .netdev = "pf0"}, {.count = 2, .up = true});
    kernel_.AddPf({.address = kOtherPf, .netdev = "pf1"}, {.count = 1, .up = true});
  }
  NetNs Host() { return std::move(*kernel_.HostNetns()); }
  std::unique_ptr<RouteApi> Route() { return std::move(*kernel_.OpenRoute(Host())); }
  Link Find(const std::string& name) { return Route()->FindLink(name)->value(); }
  // The MAC of the conflict, if there is one.
  std::optional<MacAddress> Probed(const std::string& link, const std::string& address) {
    const ProbeTarget target{Find(link).index, Find(link).mac, *IpAddress::Parse(address)};
    const auto found = kernel_.ProbeAddresses(Host(), {target}, kBudget).value();
    if (found.empty()) return std::nullopt;
    EXPECT_EQ(found[0].target, target);
    return found[0].other;
  }
  std::optional<MacAddress> Resolved(const std::string& link, const std::string& address) {
    const int index = Find(link).index;
    const IpAddress ip = *IpAddress::Parse(address);
    EXPECT_TRUE(Route()->ResolveNeighbour(index, ip));
    return Route()->WaitNeighbour(index, ip, std::chrono::steady_clock::now()).value();
  }

  FakeSysfs sysfs_;
  FakeKernel kernel_{sysfs_};
  const MacAddress mac_ = *MacAddress::Parse("02:00:00:00:00:99");
};

TEST_F(FakeNetworkTest, ForeignHostsAnswerOnTheirNetwork) {
  kernel_.AddForeignHost(kPf, "10.0.0.7", "02:00:00:00:00:99");
  kernel_.AddForeignHost("", "fd00::7", "02:00:00:00:00:99");
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), mac_);
  EXPECT_EQ(Probed("pf0", "10.0.0.7"), mac_);
  EXPECT_EQ(Probed("pf1v0", "10.0.0.7"), std::nullopt);
  EXPECT_EQ(Probed("pf1v0", "fd00::7"), mac_) << "in all networks";
  EXPECT_EQ(Probed("pf0v0", "10.0.0.8"), std::nullopt);
  EXPECT_EQ(kernel_.probes().size(), 5U);
  EXPECT_EQ(kernel_.probes()[0].budget, kBudget);
}

TEST_F(FakeNetworkTest, OtherLinksOfTheSamePfAndVlanAnswer) {
  kernel_.AddAddress(kHost, "pf0v1", "10.0.0.7/24");
  kernel_.AddAddress(kHost, "pf0v1", "fd00::7/64");
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), Find("pf0v1").mac);
  EXPECT_EQ(Probed("pf1v0", "10.0.0.7"), std::nullopt) << "another PF";
  ASSERT_TRUE(kernel_.WriteSysctls(Host(), {{"net/ipv4/conf/pf0v1/arp_ignore", "8"}}));
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), std::nullopt) << "it does not answer";
  EXPECT_EQ(Probed("pf0v0", "fd00::7"), Find("pf0v1").mac) << "which is of ARP only";
  ASSERT_TRUE(kernel_.WriteSysctls(Host(), {{"net/ipv4/conf/pf0v1/arp_ignore", "1"}}));
  VfSettings vlan;
  vlan.vlan = {{100, 0}};
  ASSERT_TRUE(Route()->SetVf(Find("pf0").index, 1, vlan));
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), std::nullopt) << "another VLAN";
  ASSERT_TRUE(Route()->SetVf(Find("pf0").index, 0, vlan));
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), Find("pf0v1").mac);
  kernel_.SetUp(kHost, "pf0v1", false);
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), std::nullopt) << "it is down";
}

TEST_F(FakeNetworkTest, VethPeersAnswer) {
  const std::string pod = kernel_.AddNamespace("pod");
  kernel_.AddVeth(kHost, "veth0", pod, "eth0");
  kernel_.AddAddress(pod, "eth0", "10.0.0.7/24");
  EXPECT_TRUE(Probed("veth0", "10.0.0.7"));
  EXPECT_FALSE(Probed("pf0v0", "10.0.0.7"));
}

TEST_F(FakeNetworkTest, OneOwnMacIsNoConflict) {
  kernel_.AddForeignHost(kPf, "10.0.0.7", Find("pf0v0").mac.ToString());
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), std::nullopt);
}

TEST_F(FakeNetworkTest, ProbesNeedALinkThatIsUp) {
  const IpAddress address = *IpAddress::Parse("10.0.0.7");
  EXPECT_EQ(kernel_.ProbeAddresses(Host(), {{4242, mac_, address}}, kBudget).error().code,
            ErrorCode::kNotFound);
  const int index = Find("pf0v0").index;
  kernel_.SetUp(kHost, "pf0v0", false);
  EXPECT_EQ(kernel_.ProbeAddresses(Host(), {{index, mac_, address}}, kBudget).error().sys_errno, ENETDOWN);
  EXPECT_TRUE(kernel_.ProbeAddresses(Host(), {{index, mac_, address}}, milliseconds(0))->empty())
      << "nothing is sent";
  kernel_.FailEvery("ProbeAddresses", EPERM);
  EXPECT_EQ(kernel_.ProbeAddresses(Host(), {}, kBudget).error().sys_errno, EPERM);
}

TEST_F(FakeNetworkTest, NeighboursAreWhoAnswers) {
  kernel_.AddForeignHost(kPf, "10.0.0.254", "02:00:00:00:00:99");
  const IpAddress gateway = *IpAddress::Parse("10.0.0.254");
  const std::string before = kernel_.Snapshot();
  const int index = Find("pf0v0").index;
  EXPECT_EQ(*Route()->WaitNeighbour(index, gateway, {}), std::nullopt) << "never asked";
  EXPECT_EQ(Resolved("pf0v0", "10.0.0.254"), mac_);
  EXPECT_EQ(Resolved("pf1v0", "10.0.0.254"), std::nullopt);
  EXPECT_NE(kernel_.Snapshot(), before);
  EXPECT_EQ(Route()->ListNeighbours(index)->size(), 1U);
  // Entries go with the link's state.
  for (const char* link : {"pf0v0", "pf1v0"}) {
    kernel_.SetUp(kHost, link, false);
    kernel_.SetUp(kHost, link, true);
  }
  EXPECT_EQ(kernel_.Snapshot(), before);
  EXPECT_EQ(Route()->ResolveNeighbour(4242, gateway).error().code, ErrorCode::kNotFound);
}

TEST_F(FakeNetworkTest, ANeighbourThatComesLaterIsFoundByWaiting) {
  const IpAddress gateway = *IpAddress::Parse("10.0.0.254");
  EXPECT_EQ(Resolved("pf0v0", "10.0.0.254"), std::nullopt);
  kernel_.AddForeignHost(kPf, "10.0.0.254", "02:00:00:00:00:99");
  EXPECT_EQ(*Route()->WaitNeighbour(Find("pf0v0").index, gateway, {}), mac_);
}

TEST_F(FakeNetworkTest, ProcessesAreThereWhenSaidSo) {
  const std::string pod = kernel_.AddNamespace("pod");
  EXPECT_TRUE(*kernel_.HasProcesses(Host()));
  EXPECT_FALSE(*kernel_.HasProcesses(*kernel_.OpenNetns(pod)));
  kernel_.SetHasProcesses(pod, true);
  const NetNs ns = std::move(*kernel_.OpenNetns(pod));
  EXPECT_TRUE(*kernel_.HasProcesses(ns));
  kernel_.RemoveNamespace(pod);
  EXPECT_FALSE(*kernel_.HasProcesses(ns));
}

}  // namespace
}  // namespace railhead::testing

// Which devices config.json's selectors take, beyond VFs with network drivers.
#include "deviceplugin/node/resources/ddp_profiles.h"
#include "deviceplugin/node/resources/sriovdp_config.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "netns/base/text.h"
#include "tests/support/daemon/two_rails.h"
#include "tests/unit/deviceplugin/node/resources/other_devices.h"

namespace railhead::testing {
namespace {

using Ids = std::vector<std::string>;

class SriovdpDevicesTest : public TwoRails {
 protected:
  using Pools = std::vector<std::shared_ptr<const resources::ResourcePool>>;

  // Of resources "{...}, {...}".
  Pools PoolsFor(const std::string& resources, const inventory::HostNetwork& host = {}) {
    const auto specs =
        resources::ParseSriovdpConfig(R"({"resourceList": [)" + resources + "]}", "config.json", "intel.com");
    if (!specs) {
      ADD_FAILURE() << Describe(specs.error());
      return {std::make_shared<resources::ResourcePool>()};
    }
    inventory_ = Discover(host);
    return BuildPools(*specs, *inventory_);
  }
  Ids Selected(const std::string& selectors, const std::string& type = "netDevice",
               const inventory::HostNetwork& host = {}) {
    return IdsOf(*PoolsFor(Resource("net", selectors, type), host).front());
  }
  static std::string Resource(const std::string& name, const std::string& selectors,
                              const std::string& type = "netDevice") {
    return R"({"resourceName": ")" + name + R"(", "deviceType": ")" + type + R"(", "selectors": )" +
           selectors + "}";
  }
  [[nodiscard]] std::string Why(const Pools& pools, const std::string& id) const {
    const inventory::NicFunction* function = inventory_->Find(id);
    return function == nullptr ? "no such function" : WhyInNoPool(pools, *inventory_, *function).because;
  }

  std::shared_ptr<const inventory::Inventory> inventory_;
};

TEST_F(SriovdpDevicesTest, UserSpaceDriversHaveToBeNamed) {
  BindToUserSpace(sysfs_, vfs0_[1], "vfio-pci");
  BindToUserSpace(sysfs_, vfs0_[2], "uio_pci_generic");
  BindToUserSpace(sysfs_, vfs0_[3], "mlx5_vfio_pci");
  EXPECT_EQ(Selected(R"({"pfNames": ["pf0"]})"), Ids{vfs0_[0]});
  EXPECT_EQ(Selected(R"({"pfNames": ["pf0"], "drivers": ["vfio-pci"]})"), Ids{vfs0_[1]});
  EXPECT_EQ(Selected(R"([{"drivers": ["uio_pci_generic", "igb_uio"]}, {"drivers": ["mlx5_vfio_pci"]}])"),
            (Ids{vfs0_[2], vfs0_[3]}));
  const auto pools = PoolsFor(Resource("net", R"({"pfNames": ["pf0"]})"));
  EXPECT_NE(Why(pools, vfs0_[1]).find("user-space driver vfio-pci"), std::string::npos)
      << Why(pools, vfs0_[1]);
}

TEST_F(SriovdpDevicesTest, AVfioVfHasTheKindOfItsPf) {
  BindToUserSpace(sysfs_, vfs0_[1], "vfio-pci");
  EXPECT_EQ(Selected(R"({"drivers": ["vfio-pci"], "linkTypes": ["ether"]})"), Ids{vfs0_[1]});
  EXPECT_EQ(Selected(R"({"drivers": ["vfio-pci"], "linkTypes": ["infiniband"]})"), Ids{});
  EXPECT_EQ(Selected(R"({"drivers": ["vfio-pci"], "isRdma": true})"), Ids{}) << "it has no RDMA device";
}

TEST_F(SriovdpDevicesTest, AcceleratorsAreASeparateWorld) {
  AddAcceleratorFunction(sysfs_, "0000:b0:00.0", "qat");
  AddAcceleratorFunction(sysfs_, "0000:b1:00.0", "vfio-pci");
  AddAcceleratorFunction(sysfs_, "0000:b2:00.0", "");
  sysfs_.Write("/sys/bus/pci/devices/0000:b1:00.0/acpi_index", "7\n");
  EXPECT_EQ(Selected("{}", "accelerator"), (Ids{"0000:b0:00.0", "0000:b1:00.0"}));
  EXPECT_EQ(Selected(R"({"acpiIndexes": ["7"]})", "accelerator"), Ids{"0000:b1:00.0"});
  EXPECT_EQ(Selected(R"({"pciAddresses": ["0000:b0:00.0"], "vendors": ["8086"], "drivers": ["qat"]})",
                     "accelerator"),
            Ids{"0000:b0:00.0"});
  EXPECT_EQ(Selected(R"({"vendors": ["15b3"]})", "accelerator"), Ids{});
  EXPECT_EQ(Selected("{}").size(), 8U) << "no accelerator among the network functions";
  const auto pools = PoolsFor(Resource("fpga", "{}", "accelerator"));
  EXPECT_NE(Why(pools, "0000:b2:00.0").find("bound to no driver"), std::string::npos);
}

TEST_F(SriovdpDevicesTest, SubfunctionsByPfAndRangeOfSfnums) {
  AddSubfunction(sysfs_, kPf0, "mlx5_core.sf.2", 88, "sf0", "mlx5_7");
  AddSubfunction(sysfs_, kPf0, "mlx5_core.sf.3", 89, "");
  AddSubfunction(sysfs_, kPf1, "mlx5_core.sf.4", 88, "sf2");
  // Parts of a function, without a network device of their own.
  sysfs_.Write("/sys/bus/pci/devices/0000:43:00.0/mlx5_core.eth.0/power", "");
  sysfs_.Link("/sys/bus/auxiliary/devices/mlx5_core.eth.0",
              "/sys/devices/pci0000:40/0000:40:03.0/0000:43:00.0/mlx5_core.eth.0");
  const std::string kAux = "auxNetDevice";
  EXPECT_EQ(Selected(R"({"auxTypes": ["sf"]})", kAux),
            (Ids{"mlx5_core.sf.2", "mlx5_core.sf.3", "mlx5_core.sf.4"}));
  EXPECT_EQ(Selected(R"({"auxTypes": ["sf"], "pfNames": ["pf0#88"]})", kAux), Ids{"mlx5_core.sf.2"});
  EXPECT_EQ(Selected(R"({"auxTypes": ["sf"], "rootDevices": ["0000:83:00.0#0-100"]})", kAux),
            Ids{"mlx5_core.sf.4"});
  EXPECT_EQ(Selected(R"({"auxTypes": ["sf"], "isRdma": true})", kAux), Ids{"mlx5_core.sf.2"});
  EXPECT_EQ(
      Selected(R"({"auxTypes": ["sf"], "linkTypes": ["ether"], "drivers": ["mlx5_core"]})", kAux).size(), 3U);
  EXPECT_EQ(Selected(R"({"auxTypes": ["eth"]})", kAux), Ids{});
  EXPECT_EQ(Selected(R"({"auxTypes": ["sf"], "pfNames": ["pf1"]})", kAux, {{{"sf2", "carries its address"}}}),
            Ids{})
      << "it carries the host's network";
}

TEST_F(SriovdpDevicesTest, OtherAuxiliaryDevicesWithANetworkDeviceStayWhileTheyAreInPods) {
  AddSubfunction(sysfs_, kPf0, "x_core.eth.9", 9, "aux9");
  EXPECT_EQ(Selected(R"({"auxTypes": ["eth"]})", "auxNetDevice"), Ids{"x_core.eth.9"});
  sysfs_.Remove("/sys/bus/pci/devices/0000:43:00.0/x_core.eth.9/net");
  EXPECT_EQ(Selected(R"({"auxTypes": ["eth"]})", "auxNetDevice"), Ids{});
  sysfs_.Write("/var/lib/railhead/allocations/x_core.eth.9.json", "{}");
  EXPECT_EQ(Selected(R"({"auxTypes": ["eth"]})", "auxNetDevice"), Ids{"x_core.eth.9"});
}

TEST_F(SriovdpDevicesTest, ASubfunctionInAPodKeepsThePfsKind) {
  AddSubfunction(sysfs_, kPf0, "mlx5_core.sf.2", 88, "");  // exclusive mode: no RDMA device either
  const std::string selectors = R"({"auxTypes": ["sf"], "isRdma": true, "linkTypes": ["ether"]})";
  EXPECT_EQ(Selected(selectors, "auxNetDevice"), Ids{}) << "bound to no driver";
  BindSubfunction(sysfs_, kPf0, "mlx5_core.sf.2");
  EXPECT_EQ(Selected(selectors, "auxNetDevice"), Ids{"mlx5_core.sf.2"});
}

TEST_F(SriovdpDevicesTest, VdpaByTypeOfDriver) {
  AddVdpa(sysfs_, vfs0_[0], "vdpa0", "vhost_vdpa");
  AddVdpa(sysfs_, vfs0_[1], "blue", "virtio_vdpa");
  EXPECT_EQ(Selected(R"({"vdpaType": "vhost"})"), Ids{vfs0_[0]});
  EXPECT_EQ(Selected(R"({"vdpaType": "virtio"})"), Ids{vfs0_[1]});
  EXPECT_EQ(Selected(R"({"pfNames": ["pf0"]})").size(), 4U);
}

TEST_F(SriovdpDevicesTest, AcpiIndexes) {
  sysfs_.AddPf({.address = "0000:c3:00.0", .netdev = "plain", .total_vfs = 0});
  sysfs_.Write("/sys/bus/pci/devices/0000:c3:00.0/acpi_index", "101\n");
  EXPECT_EQ(Selected(R"({"acpiIndexes": ["102", "101"]})"), Ids{"0000:c3:00.0"});
  EXPECT_EQ(Selected(R"({"acpiIndexes": ["102"]})"), Ids{});
}

TEST_F(SriovdpDevicesTest, NetworksOfDifferentKindsAreDistinguished) {
  for (const std::string& vf : vfs1_) MakeInfiniBand(sysfs_, vf, vf == vfs1_[0] ? "0x8001" : "0xffff");
  // Without IPoIB the function has no network device, so only its RDMA port shows the kind of network.
  sysfs_.MoveToPod(vfs1_[3]);
  const auto pools = PoolsFor(Resource("partition", R"({"pKeys": ["0x50", "0x8001"]})") + "," +
                              Resource("ib", R"({"linkTypes": ["infiniband"]})") + "," +
                              Resource("roce", R"({"linkTypes": ["ether"], "isRdma": true})"));
  EXPECT_EQ(IdsOf(*pools[0]), Ids{vfs1_[0]});
  EXPECT_EQ(IdsOf(*pools[1]), (Ids{vfs1_[1], vfs1_[2], vfs1_[3]}));
  EXPECT_EQ(IdsOf(*pools[2]), vfs0_);
}

TEST_F(SriovdpDevicesTest, PKeysAreInfiniBandOnly) {
  sysfs_.Write("/sys/bus/pci/devices/" + vfs0_[0] + "/infiniband/pf0_rdma0/ports/1/pkeys/0", "0xffff\n");
  EXPECT_EQ(Selected(R"({"pKeys": ["0xffff"]})"), Ids{});
}

TEST_F(SriovdpDevicesTest, APfWithVfsHasToBeNamedAndItsVfsLeftAlone) {
  EXPECT_EQ(Selected(R"({"devices": ["1021"]})"), Ids{}) << "not named";
  EXPECT_EQ(Selected(R"({"devices": ["1021"], "pfNames": ["pf0"]})"), Ids{kPf0});
  EXPECT_EQ(Selected(R"({"pciAddresses": ["0000:43:00.0", "0000:83:00.0"]})"), (Ids{kPf0, kPf1}));
  EXPECT_EQ(Selected(R"({"pfNames": ["pf0"]})"), vfs0_) << "its VFs are selected, too";
  EXPECT_EQ(
      Selected(R"({"pciAddresses": ["0000:43:00.0"]})", "netDevice", {{{"pf0v3", "carries its address"}}}),
      Ids{})
      << "the host needs one of its VFs";
  const auto pools = PoolsFor(Resource("pf", R"({"pciAddresses": ["0000:43:00.0", "0000:83:00.0"]})") + "," +
                              Resource("vf", R"({"pfNames": ["pf1#0-1"]})"));
  EXPECT_EQ(IdsOf(*pools[0]), Ids{kPf0});
  EXPECT_EQ(IdsOf(*pools[1]), (Ids{vfs1_[0], vfs1_[1]}));
  EXPECT_NE(Why(pools, kPf1).find(vfs1_[0] + " is selected by a resource"), std::string::npos)
      << Why(pools, kPf1);
}

TEST_F(SriovdpDevicesTest, AVfThatCannotBeGivenOutKeepsItsPfBackToo) {
  for (const std::string& vf : vfs0_) BindToUserSpace(sysfs_, vf, "vfio-pci");
  EXPECT_EQ(Selected(R"({"pfNames": ["pf0"]})"), Ids{})
      << "whoever wrote this meant the VFs, not the PF below them";
}

TEST_F(SriovdpDevicesTest, APfWithSelectedSubfunctionsStays) {
  sysfs_.AddPf({.address = "0000:c3:00.0", .netdev = "plain", .total_vfs = 0});
  AddSubfunction(sysfs_, "0000:c3:00.0", "mlx5_core.sf.5", 1, "sf5");
  EXPECT_EQ(Selected(R"({"pfNames": ["plain"]})"), Ids{"0000:c3:00.0"});
  const auto pools = PoolsFor(Resource("pf", R"({"pfNames": ["plain"]})") + "," +
                              Resource("sf", R"({"auxTypes": ["sf"]})", "auxNetDevice"));
  EXPECT_TRUE(pools[0]->members.empty());
  EXPECT_EQ(IdsOf(*pools[1]), Ids{"mlx5_core.sf.5"});
}

TEST_F(SriovdpDevicesTest, DdpProfilesAreAskedOfThePfsAndOnlyWhereTheyMatter) {
  std::vector<std::string> asked;
  const resources::DdpLookup lookup = [&](const std::string& pf) {
    asked.push_back(pf);
    return resources::DdpAnswer{pf == kPf1 ? "ICE COMMS Package" : "", std::nullopt};
  };
  const auto pools_of = [&](const std::string& selectors) {
    sysfs_.Write("/etc/pcidp/config.json", R"({"resourceList": [)" + Resource("a", selectors) + "]}");
    const auto plan = TakeSnapshot(root_, {std::nullopt, "/etc/pcidp/config.json", "intel.com"}, {}, lookup);
    return plan ? IdsOf(*plan->pools[0]) : Ids{Describe(plan.error())};
  };
  EXPECT_EQ(pools_of("{}").size(), vfs0_.size() + vfs1_.size());
  EXPECT_TRUE(asked.empty());
  EXPECT_EQ(pools_of(R"({"ddpProfiles": ["GTPv1-C/U IPv4/IPv6 payload", "ICE COMMS Package"]})"), vfs1_);
  EXPECT_EQ(asked, (std::vector<std::string>{kPf0, kPf1}));
  EXPECT_EQ(pools_of(R"({"ddpProfiles": ["GTPv1-C/U IPv4/IPv6 payload"]})"), Ids{});
}

// A driver that recovers its device, or whose firmware does not answer.
TEST_F(SriovdpDevicesTest, ADdpProfileStaysWhileTheDriverDoesNotAnswer) {
  int asked = 0;
  std::optional<Error> trouble;
  resources::DdpMemory::Clock::time_point now{};
  resources::DdpMemory memory(
      [&](const std::string&) {
        ++asked;
        return trouble ? resources::DdpAnswer{"", trouble}
                       : resources::DdpAnswer{"ICE COMMS Package", std::nullopt};
      },
      [&] { return now; });
  sysfs_.Write("/etc/pcidp/config.json",
               R"({"resourceList": [)" + Resource("a", R"({"ddpProfiles": ["ICE COMMS Package"]})") + "]}");
  // The number of devices of the resource, and how many PFs were queried for it.
  const auto look = [&] {
    asked = 0;
    const auto plan = TakeSnapshot(root_, {std::nullopt, "/etc/pcidp/config.json", "intel.com"}, {},
                                   [&](const std::string& pf) { return memory.Query(pf); });
    EXPECT_TRUE(plan);
    EXPECT_EQ(plan->warnings.size(), trouble ? 2U : 0U) << "one for each PF";
    memory.KeepOnly(*plan->inventory);
    return std::pair(plan->pools[0]->members.size(), asked);
  };
  const std::size_t all = vfs0_.size() + vfs1_.size();
  EXPECT_EQ(look(), std::pair(all, 2));
  trouble = Error{ErrorCode::kIo, "busy", "", 0};
  EXPECT_EQ(look(), std::pair(all, 2));
  now += resources::DdpMemory::kFirstPause - std::chrono::milliseconds(1);
  EXPECT_EQ(look(), std::pair(all, 0)) << "not asked all the time";
  now += std::chrono::milliseconds(1);
  EXPECT_EQ(look(), std::pair(all, 2));
  now += resources::DdpMemory::kFirstPause;
  EXPECT_EQ(look(), std::pair(all, 0)) << "the pauses grow";
  now += resources::DdpMemory::kFirstPause;
  EXPECT_EQ(look(), std::pair(all, 2));
  for (int round = 0; round < 10; ++round) {
    now += resources::DdpMemory::kLongestPause;
    EXPECT_EQ(look(), std::pair(all, 2)) << "and have an end";
  }
  memory.KeepOnly(inventory::Inventory());
  EXPECT_EQ(look(), std::pair(std::size_t{0}, 2)) << "what is gone is forgotten";
  trouble.reset();
  now += resources::DdpMemory::kFirstPause;
  EXPECT_EQ(look(), std::pair(all, 2));
  EXPECT_EQ(look(), std::pair(all, 2)) << "one that answers may have another one by now";
}

TEST_F(SriovdpDevicesTest, WhyAFunctionIsInNoPool) {
  sysfs_.AddPf({.address = "0000:c3:00.0", .netdev = "eth0", .total_vfs = 0});
  const auto pools = PoolsFor(Resource("a", R"({"pfNames": ["pf1"], "vendors": ["15b3"]})") + "," +
                                  Resource("b", R"([{"vendors": ["8086"]}, {"drivers": ["ice"]}])"),
                              {{{"eth0", "carries the host's default route"}}});
  EXPECT_EQ(Why(pools, vfs0_[0]),
            "is selected by no resource (intel.com/a: pfNames, intel.com/b: vendors, intel.com/b: drivers)");
  EXPECT_EQ(Why(pools, "0000:c3:00.0"), "carries the host's default route (eth0)");
  EXPECT_EQ(Why(pools, kPf0), "is a PF with VFs");
  EXPECT_EQ(Why(pools, kPf1), "is a PF with VFs, of which " + vfs1_[0] + " is selected by a resource");
}

}  // namespace
}  // namespace railhead::testing

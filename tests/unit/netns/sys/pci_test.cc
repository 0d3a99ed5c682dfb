#include "netns/sys/pci.h"

#include <gtest/gtest.h>

#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/pci_address.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead {
namespace {

using testing::FakeSysfs;

PciAddress At(const std::string& text) {
  return PciAddress::Parse(text).value();
}

std::vector<std::string> Names(const std::vector<PciDevice>& devices) {
  std::vector<std::string> names;
  for (const PciDevice& device : devices) names.push_back(device.address.ToString());
  return names;
}

class PciTest : public ::testing::Test {
 protected:
  PciTest() {
    sysfs_.AddPf({.address = "0000:43:00.0",
                  .netdev = "pf0",
                  .rdma = "mlx5_0",
                  .numa_node = 1,
                  .bridges = {"0000:40:01.0", "0000:41:00.0", "0000:42:00.0"}});
    sysfs_.AddPf({.address = "0000:03:00.0", .netdev = "eth0", .total_vfs = 0, .driver = "virtio-pci"});
  }
  FakeSysfs sysfs_;
  Root root_ = sysfs_.root();
};

TEST_F(PciTest, ReadsAPf) {
  const auto pf = FindPciDevice(root_, At("0000:43:00.0"));
  ASSERT_TRUE(pf && *pf);
  EXPECT_EQ((*pf)->vendor, 0x15b3);
  EXPECT_EQ((*pf)->device, 0x1021);
  EXPECT_TRUE((*pf)->IsNetwork());
  EXPECT_EQ((*pf)->driver, "mlx5_core");
  EXPECT_EQ((*pf)->numa_node, 1);
  EXPECT_FALSE((*pf)->is_vf);
  EXPECT_EQ((*pf)->sriov_totalvfs, 64);
  EXPECT_EQ(NumVfsOf(root_, (*pf)->address), 0);
  EXPECT_EQ((*pf)->path, "/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0/0000:43:00.0");
}

TEST_F(PciTest, AnUnknownNumaNodeIsAbsent) {
  const auto pf = FindPciDevice(root_, At("0000:03:00.0"));
  ASSERT_TRUE(pf && *pf);
  EXPECT_EQ((*pf)->numa_node, std::nullopt);
}

TEST_F(PciTest, AbsenceIsAValue) {
  const auto none = FindPciDevice(root_, At("0000:99:00.0"));
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  EXPECT_TRUE(VfsOf(root_, At("0000:99:00.0")).value().empty());
  EXPECT_TRUE(NetdevsOf(root_, At("0000:99:00.0")).value().empty());
  EXPECT_EQ(PciAddressOfNetdev(root_, "nothing").value(), std::nullopt);
  EXPECT_EQ(PciAddressOfNetdev(root_, "../net/pf0").value(), std::nullopt);
}

TEST_F(PciTest, AnAttributeThatIsNoNumberIsAnError) {
  sysfs_.Write("/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0/0000:43:00.0/vendor",
               "0x15b3f\n");
  const auto pf = FindPciDevice(root_, At("0000:43:00.0"));
  ASSERT_FALSE(pf);
  EXPECT_EQ(pf.error().code, ErrorCode::kConflict);
}

TEST_F(PciTest, VfsComeInTheOrderOfTheirIndexAcrossTenAndBusses) {
  const auto made = sysfs_.AddVfs("0000:43:00.0", 20, {.rdma = "mlx5_v{n}", .offset = 248});
  EXPECT_EQ(made.front(), "0000:43:1f.0");
  EXPECT_EQ(made.back(), "0000:44:01.3");
  const auto vfs = VfsOf(root_, At("0000:43:00.0"));
  ASSERT_TRUE(vfs);
  ASSERT_EQ(vfs->size(), 20U);
  for (std::size_t n = 0; n < made.size(); ++n) {
    EXPECT_EQ((*vfs)[n].ToString(), made[n]);
    const auto vf = FindPciDevice(root_, (*vfs)[n]);
    ASSERT_TRUE(vf && *vf);
    EXPECT_TRUE((*vf)->is_vf);
    EXPECT_EQ((*vf)->physfn, At("0000:43:00.0"));
    EXPECT_EQ((*vf)->vf_index, static_cast<int>(n));
    EXPECT_EQ((*vf)->numa_node, 1);
  }
  const auto all = ReadVfs(root_, At("0000:43:00.0"));
  ASSERT_TRUE(all);
  EXPECT_EQ(Names(*all), made);
  EXPECT_EQ((*all)[13].vf_index, 13);
  EXPECT_EQ((*all)[13], **FindPciDevice(root_, At(made[13])));
}

TEST_F(PciTest, ListsPfsWithoutVfsAndBridgesInPciOrder) {
  sysfs_.AddVfs("0000:43:00.0", 2);
  sysfs_.AddPf({.address = "0000:83:00.0", .netdev = "pf1", .rdma = "mlx5_1", .total_vfs = 0});
  EXPECT_EQ(Names(ListNetworkPfs(root_).value()),
            (std::vector<std::string>{"0000:03:00.0", "0000:43:00.0", "0000:83:00.0"}));
  // A rail needs RDMA or SR-IOV: the management NIC has neither.
  EXPECT_EQ(Names(ListRailPfs(root_).value()), (std::vector<std::string>{"0000:43:00.0", "0000:83:00.0"}));
}

TEST_F(PciTest, NetdevsAndRdmaDevicesOfAVf) {
  const auto vfs = sysfs_.AddVfs("0000:43:00.0", 2, {.rdma = "mlx5_{n}"});
  EXPECT_EQ(NetdevsOf(root_, At(vfs[1])).value(), std::vector<std::string>{"pf0v1"});
  EXPECT_EQ(RdmaDevicesOf(root_, At(vfs[1])).value(), std::vector<std::string>{"mlx5_1"});
  EXPECT_EQ(PciAddressOfNetdev(root_, "pf0v1").value(), At(vfs[1]));
  sysfs_.MoveToPod(vfs[1]);
  EXPECT_TRUE(NetdevsOf(root_, At(vfs[1])).value().empty());
  EXPECT_EQ(RdmaDevicesOf(root_, At(vfs[1])).value(), std::vector<std::string>{"mlx5_1"});
}

TEST_F(PciTest, VirtioHasADeviceInBetween) {
  sysfs_.AddPf({.address = "0000:04:00.0", .netdev = "", .total_vfs = 0, .driver = "virtio-pci"});
  const std::string device = "/sys/devices/pci0000:00/0000:00:04.0/0000:04:00.0/virtio0";
  sysfs_.Write(device + "/net/ens4/type", "1\n");
  sysfs_.Link(device + "/net/ens4/device", device);
  sysfs_.Link("/sys/class/net/ens4", device + "/net/ens4");
  EXPECT_EQ(NetdevsOf(root_, At("0000:04:00.0")).value(), std::vector<std::string>{"ens4"});
  EXPECT_EQ(PciAddressOfNetdev(root_, "ens4").value(), At("0000:04:00.0"));
}

TEST_F(PciTest, TheUplinkIsNoRepresentor) {
  const std::string net = "/sys/bus/pci/devices/0000:43:00.0/net/";
  sysfs_.Write(net + "a_representor/phys_port_name", "pf0vf1\n");
  sysfs_.Write(net + "b_representor/phys_port_name", "c1pf0vf1\n");
  sysfs_.Write(net + "pf0/phys_port_name", "p0\n");
  EXPECT_EQ(UplinkNetdev(root_, At("0000:43:00.0")).value(), "pf0");
}

// Only the function's own netdevs remain, whatever their names are. The first port's netdev comes first.
TEST_F(PciTest, OwnNetdevsAreNoRepresentorsAndInTheOrderOfTheirPorts) {
  const std::string net = "/sys/bus/pci/devices/0000:43:00.0/net/";
  const PciAddress pf = At("0000:43:00.0");
  for (const char* port_name : {"pf0", "pf0vf1", "pf0sf88", "pf1vf0", "c1pf0", "c1pf0vf1", "c2pf0sf3"}) {
    for (const char* name : {"aaa", "zzz"}) {
      sysfs_.Write(net + name + "/phys_port_name", std::string(port_name) + "\n");
      EXPECT_EQ(OwnNetdevsOf(root_, pf).value(), std::vector<std::string>{"pf0"}) << port_name;
    }
  }
  for (const char* own : {"", "p0", "p1"}) {
    if (*own != '\0') sysfs_.Write(net + "pf0/phys_port_name", std::string(own) + "\n");
    EXPECT_EQ(UplinkNetdev(root_, pf).value(), "pf0") << own;
  }
  sysfs_.Write(net + "first/dev_port", "0\n");
  sysfs_.Write(net + "pf0/dev_port", "10\n");
  sysfs_.Write(net + "second/dev_port", "2\n");
  EXPECT_EQ(OwnNetdevsOf(root_, pf).value(), (std::vector<std::string>{"first", "second", "pf0"}));
  EXPECT_EQ(UplinkNetdev(root_, pf).value(), "first");
}

TEST_F(PciTest, RebindWritesTheAddressToUnbindAndBind) {
  const auto vfs = sysfs_.AddVfs("0000:43:00.0", 1, {.driver = "igbvf"});
  ASSERT_TRUE(RebindDriver(root_, At(vfs[0])));
  EXPECT_EQ(ReadFile(root_.Path("/sys/bus/pci/drivers/igbvf/unbind")).value(), vfs[0]);
  EXPECT_EQ(ReadFile(root_.Path("/sys/bus/pci/drivers/igbvf/bind")).value(), vfs[0]);
}

TEST_F(PciTest, RebindSaysWhatIsLeftWhenBindingFails) {
  const auto vfs = sysfs_.AddVfs("0000:43:00.0", 1, {.driver = "igbvf"});
  sysfs_.Remove("/sys/bus/pci/drivers/igbvf/bind");
  const auto done = RebindDriver(root_, At(vfs[0]));
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().hint.find("echo " + vfs[0]), std::string::npos) << done.error().hint;
  sysfs_.Unbind(vfs[0]);
  const auto unbound = RebindDriver(root_, At(vfs[0]));
  ASSERT_FALSE(unbound);
  EXPECT_EQ(unbound.error().code, ErrorCode::kNotFound);
}

TEST_F(PciTest, UppersAreFoundThroughAllLayers) {
  for (const char* name : {"bond0", "bond0.5", "br0"}) sysfs_.AddVirtualNetdev(name);
  sysfs_.AddUpper("pf0", "bond0");
  sysfs_.AddUpper("bond0", "bond0.5");
  sysfs_.AddUpper("bond0.5", "br0");
  EXPECT_EQ(UpperDevicesOf(root_, "pf0").value(), (std::vector<std::string>{"bond0", "bond0.5", "br0"}));
  EXPECT_EQ(UpperDevicesOf(root_, "br0").value(), std::vector<std::string>{});
  EXPECT_EQ(LowerDevicesOf(root_, "br0").value(), (std::vector<std::string>{"bond0", "bond0.5", "pf0"}));
  EXPECT_EQ(LowerDevicesOf(root_, "pf0").value(), std::vector<std::string>{});
  EXPECT_EQ(HardwareTypeName(HardwareTypeOf(root_, "pf0").value().value()), "ether");
  EXPECT_EQ(HardwareTypeOf(root_, "nothing").value(), std::nullopt);
}

TEST(PciAddress, PrintsWhatItParsed) {
  for (const char* text : {"0000:43:10.0", "0000:00:1f.7", "ffff:ff:1f.7", "10000:e1:00.0"}) {
    const auto address = PciAddress::Parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(PciAddress, TakesUpperCaseAndPrintsLowerCase) {
  const auto address = PciAddress::Parse("00AB:C3:1E.1");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->ToString(), "00ab:c3:1e.1");
}

TEST(PciAddress, RefusesEverythingElse) {
  for (const char* text :
       {"", "43:10.0", "000:43:10.0", "0000:43:10", "0000:43:10.", "0000:43:10.8", "0000:43:20.0",
        "0000:43:1.0", "0000-43-10.0", "0000:43:10.0 ", " 0000:43:10.0", "0000:4g:10.0", "0000:43:+1.0",
        "123456789:43:10.0", "../../..:43:10.0", "0000:43:10.00"}) {
    EXPECT_FALSE(PciAddress::Parse(text)) << text;
  }
}

TEST(PciAddress, SortsAsItsText) {
  const auto low = PciAddress::Parse("0000:43:10.7");
  const auto high = PciAddress::Parse("0000:43:11.0");
  const auto domain = PciAddress::Parse("0001:00:00.0");
  EXPECT_LT(*low, *high);
  EXPECT_LT(*high, *domain);
}

}  // namespace
}  // namespace railhead

#include "netns/sys/rdma_sysfs.h"

#include <gtest/gtest.h>

#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead {
namespace {

using testing::FakeSysfs;

class RdmaSysfsTest : public ::testing::Test {
 protected:
  RdmaSysfsTest() {
    sysfs_.AddPf({.address = "0000:43:00.0", .netdev = "pf0", .rdma = "mlx5_0"});
    sysfs_.AddVfs("0000:43:00.0", 2, {.rdma = "mlx5_v{n}"});
  }
  FakeSysfs sysfs_;
  Root root_ = sysfs_.root();
};

TEST_F(RdmaSysfsTest, FindsCharacterDevices) {
  EXPECT_EQ(UverbsOf(root_, "mlx5_0").value(), "uverbs0");
  EXPECT_EQ(UverbsOf(root_, "mlx5_v1").value(), "uverbs2");
  EXPECT_EQ(UverbsOf(root_, "mlx5_v").value(), std::nullopt);
  sysfs_.Write("/sys/class/infiniband_mad/umad7/ibdev", "mlx5_v1\n");
  sysfs_.Write("/sys/class/infiniband_mad/issm7/ibdev", "mlx5_v1\n");
  sysfs_.Write("/sys/class/infiniband_mad/abi_version", "5\n");
  const auto devices = CharDevicesOf(root_, "mlx5_v1");
  ASSERT_TRUE(devices);
  EXPECT_EQ(devices->uverbs, "uverbs2");
  EXPECT_EQ(devices->umad, "umad7");
  EXPECT_EQ(devices->issm, "issm7");
}

TEST_F(RdmaSysfsTest, FindsCharacterDevicesOfAFunction) {
  const std::string function = "/sys/bus/pci/devices/0000:43:02.1";
  sysfs_.Write(function + "/infiniband_mad/umad7/ibdev", "mlx5_v1\n");
  const auto devices = CharDevicesOf(root_, *PciAddress::Parse("0000:43:02.1"));
  ASSERT_TRUE(devices);
  EXPECT_EQ(devices->uverbs, "uverbs2");
  EXPECT_EQ(devices->umad, "umad7");
  EXPECT_EQ(devices->issm, std::nullopt);
  const auto none = CharDevicesOf(root_, *PciAddress::Parse("0000:99:00.0"));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->uverbs, std::nullopt);
}

TEST_F(RdmaSysfsTest, ReadsPorts) {
  EXPECT_EQ(PortStateOf(root_, "mlx5_0", 1).value(), PortState::kActive);
  EXPECT_EQ(LinkLayerOf(root_, "mlx5_0", 1).value(), LinkLayer::kEthernet);
  EXPECT_EQ(PortStateOf(root_, "mlx5_0", 2).value(), std::nullopt);
  EXPECT_EQ(LinkLayerOf(root_, "mlx5_9", 1).value(), std::nullopt);
  sysfs_.Write("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  sysfs_.Write("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  EXPECT_EQ(PortStateOf(root_, "mlx5_0", 1).value(), PortState::kDown);
  EXPECT_EQ(LinkLayerOf(root_, "mlx5_0", 1).value(), LinkLayer::kInfiniband);
  sysfs_.Write("/sys/class/infiniband/mlx5_0/ports/1/state", "ACTIVE\n");
  EXPECT_FALSE(PortStateOf(root_, "mlx5_0", 1));
}

TEST_F(RdmaSysfsTest, FindsSoftRoceByItsParent) {
  sysfs_.AddRxe("rxe_a", "pf0v0");
  EXPECT_EQ(RxeParentOf(root_, "rxe_a").value(), "pf0v0");
  EXPECT_EQ(RxeParentOf(root_, "mlx5_0").value(), std::nullopt);
  EXPECT_EQ(RxeDevicesOf(root_, "pf0v0").value(), std::vector<std::string>{"rxe_a"});
  EXPECT_TRUE(RxeDevicesOf(root_, "pf0v1").value().empty());
  EXPECT_EQ(UverbsOf(root_, "rxe_a").value(), "uverbs3");
  EXPECT_EQ(ListRdmaDevices(root_).value(),
            (std::vector<std::string>{"mlx5_0", "mlx5_v0", "mlx5_v1", "rxe_a"}));
}

TEST(RdmaSysfs, AMachineWithoutRdmaIsEmpty) {
  const FakeSysfs sysfs;
  EXPECT_TRUE(ListRdmaDevices(sysfs.root()).value().empty());
  EXPECT_EQ(UverbsOf(sysfs.root(), "mlx5_0").value(), std::nullopt);
}

}  // namespace
}  // namespace railhead

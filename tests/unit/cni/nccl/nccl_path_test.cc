// What NCCL makes of VFs' paths: which value of NCCL_IB_MERGE_VFS is right, and what it merges.
#include "cni/nccl/nccl_path.h"

#include <gtest/gtest.h>

#include "tests/support/nccl/node.h"

namespace railhead::testing {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;
using Groups = std::vector<std::vector<std::string>>;

class NcclPathTest : public ::testing::Test {
 protected:
  static nccl::NcclNic Nic(const std::string& name, const std::string& address) {
    return {.rdma_device = name, .address = AddressOf(address), .soft_roce = false};
  }
  [[nodiscard]] nccl::NcclView View(const std::vector<nccl::NcclNic>& nics) const {
    auto view = NcclViewOf(sysfs_.root(), nics);
    EXPECT_TRUE(view) << Describe(view.error());
    return view.value_or(nccl::NcclView{});
  }
  // A PF on a switch's port of its own, at the usual depth.
  void AddNic(const std::string& address, const std::string& bus_above) {
    sysfs_.AddPf({.address = address,
                  .netdev = "pf" + address,
                  .bridges = {"0000:10:01.0", bus_above + ":00.0", bus_above + ":04.0"}});
  }

  FakeSysfs sysfs_;
};

TEST_F(NcclPathTest, AVfShowsItsPf) {
  AddNic("0000:1a:00.0", "0000:18");
  sysfs_.AddVfs("0000:1a:00.0", 8, {.offset = 2});
  const nccl::NcclView view = View({Nic("mlx5_2", "0000:1a:00.2")});
  ASSERT_EQ(view.nics.size(), 1U);
  EXPECT_EQ(view.nics[0].merged.path,
            "/sys/devices/pci0000:10/0000:10:01.0/0000:18:00.0/0000:18:04.0/0000:1a:00.0");
  EXPECT_TRUE(view.nics[0].merged.holds);
  EXPECT_EQ(view.nics[0].unmerged.path, view.nics[0].merged.path);
  EXPECT_EQ(view.merge_vfs, nccl::MergeVfs::kDefault);
  EXPECT_FALSE(view.NeedsTopologyFile());
  EXPECT_EQ(view.Variables(), Variables());
}

// 1a:01.3 becomes 1a:01.0, which is there with eight VFs before it, but not with two.
TEST_F(NcclPathTest, WithoutMergingTheFirstFunctionOfTheVfsDeviceCounts) {
  AddNic("0000:1a:00.0", "0000:18");
  sysfs_.AddVfs("0000:1a:00.0", 4, {.offset = 8});
  const nccl::NcclView all = View({Nic("mlx5_4", "0000:1a:01.3")});
  EXPECT_TRUE(all.nics[0].unmerged.holds);
  EXPECT_TRUE(all.nics[0].unmerged.path.ends_with("/0000:1a:01.0"));
  AddNic("0000:2a:00.0", "0000:28");
  sysfs_.AddVfs("0000:2a:00.0", 4, {.offset = 9});
  const nccl::NcclView some = View({Nic("mlx5_4", "0000:2a:01.3")});
  EXPECT_FALSE(some.nics[0].unmerged.holds);
  EXPECT_EQ(some.nics[0].unmerged.why_not, "NCCL takes 0000:2a:01.3 for 0000:2a:01.0, which does not exist");
  EXPECT_EQ(some.merge_vfs, nccl::MergeVfs::kDefault);
}

TEST_F(NcclPathTest, AVfOnTheNextBusNeedsAFile) {
  AddNic("0000:1a:00.0", "0000:18");
  sysfs_.AddVfs("0000:1a:00.0", 2, {.offset = 256 + 4});
  const nccl::NcclView view = View({Nic("mlx5_2", "0000:1b:00.4")});
  EXPECT_EQ(view.nics[0].merged.why_not, "NCCL takes 0000:1b:00.4 for 0000:1b:00.0, which does not exist");
  EXPECT_FALSE(view.nics[0].unmerged.holds);
  EXPECT_TRUE(view.NeedsTopologyFile());
  EXPECT_EQ(view.Variables(), Variables());
}

// The first VF happens to be at the address that the others are taken for.
TEST_F(NcclPathTest, AFullNextBusHolds) {
  AddNic("0000:1a:00.0", "0000:18");
  sysfs_.AddVfs("0000:1a:00.0", 4, {.offset = 256});
  EXPECT_EQ(View({Nic("mlx5_2", "0000:1b:00.3")}).merge_vfs, nccl::MergeVfs::kDefault);
}

// NCCL_IB_MERGE_VFS=0 puts this one right: 1b:01.0 is there, 1b:00.0 is not.
TEST_F(NcclPathTest, OneValueHasToSuitAll) {
  AddNic("0000:1a:00.0", "0000:18");
  sysfs_.AddVfs("0000:1a:00.0", 4, {.offset = 256 + 8});
  const nccl::NcclNic far = Nic("mlx5_2", "0000:1b:01.3");
  const nccl::NcclView alone = View({far});
  EXPECT_EQ(alone.merge_vfs, nccl::MergeVfs::kOff);
  EXPECT_EQ(alone.Variables(), (Variables{{"NCCL_IB_MERGE_VFS", "0"}}));
  // This one it would put wrong.
  AddNic("0000:3a:00.0", "0000:38");
  sysfs_.AddVfs("0000:3a:00.0", 4, {.offset = 9});
  const nccl::NcclView both = View({far, Nic("mlx5_8", "0000:3a:01.2")});
  EXPECT_TRUE(both.NeedsTopologyFile());
}

TEST_F(NcclPathTest, AGuestsNicsAreNotItsHostBridge) {
  const FakeNode node = MakeGuest(sysfs_);
  std::vector<nccl::NcclNic> nics;
  for (const nccl::TopologyFileNic& nic : node.pod.nics)
    nics.push_back({nic.rdma_device, nic.address, false});
  const nccl::NcclView view = View(nics);
  EXPECT_EQ(view.nics[0].merged.why_not, "NCCL takes 0000:00:07.0 for 0000:00:00.0, which is a bridge");
  EXPECT_EQ(view.merge_vfs, nccl::MergeVfs::kOff);
  // With it they are two.
  EXPECT_EQ(view.virtual_nics, Groups());
}

TEST_F(NcclPathTest, AForeignFunctionDoesNotHold) {
  sysfs_.AddPf({.address = "0000:05:03.0", .netdev = "rail0", .total_vfs = 0, .bridges = {"0000:00:02.0"}});
  sysfs_.AddAccelerator({.address = "0000:05:00.0", .bridges = {"0000:00:02.0"}});
  EXPECT_EQ(View({Nic("mlx5_0", "0000:05:03.0")}).nics[0].merged.why_not,
            "NCCL takes 0000:05:03.0 for 0000:05:00.0, which is not a network controller");
  // The address is in use, but elsewhere.
  sysfs_.AddPf({.address = "0000:06:03.0", .netdev = "rail1", .total_vfs = 0, .bridges = {"0000:00:03.0"}});
  sysfs_.AddPf({.address = "0000:06:00.0", .netdev = "rail2", .total_vfs = 0, .bridges = {"0000:00:04.0"}});
  EXPECT_EQ(View({Nic("mlx5_1", "0000:06:03.0")}).nics[0].merged.why_not,
            "NCCL takes 0000:06:03.0 for 0000:06:00.0, which is below another bridge");
}

TEST_F(NcclPathTest, SoftRoceHasNoPath) {
  AddNic("0000:1a:00.0", "0000:18");
  sysfs_.AddVfs("0000:1a:00.0", 2);
  nccl::NcclNic soft = Nic("rxe_rail0", "0000:1a:02.0");
  soft.soft_roce = true;
  const nccl::NcclView view = View({soft});
  EXPECT_TRUE(view.NeedsTopologyFile());
  EXPECT_EQ(view.nics[0].merged.path, "");
  EXPECT_NE(view.nics[0].merged.why_not.find("rxe_rail0 is a soft RoCE device"), std::string::npos);
}

const Variables kApart = {{"NCCL_IB_MERGE_NICS", "0"}, {"NCCL_NET_MERGE_LEVEL", "LOC"}};

TEST_F(NcclPathTest, VfsOfOnePfAreMerged) {
  AddNic("0000:1a:00.0", "0000:18");
  AddNic("0000:2a:00.0", "0000:28");
  sysfs_.AddVfs("0000:1a:00.0", 8);
  sysfs_.AddVfs("0000:2a:00.0", 8);
  const nccl::NcclView view =
      View({Nic("mlx5_9", "0000:1a:02.5"), Nic("mlx5_11", "0000:2a:02.1"), Nic("mlx5_3", "0000:1a:02.0")});
  EXPECT_EQ(view.virtual_nics, (Groups{{"mlx5_3", "mlx5_9"}}));
  EXPECT_EQ(view.Variables(), kApart);
}

TEST_F(NcclPathTest, PortsOfOneNicAreMerged) {
  const FakeNode node = MakeDualPortNode(sysfs_);
  std::vector<nccl::NcclNic> nics;
  for (const nccl::TopologyFileNic& nic : node.pod.nics)
    nics.push_back({nic.rdma_device, nic.address, false});
  const nccl::NcclView view = View(nics);
  EXPECT_EQ(view.virtual_nics, (Groups{{"mlx5_00", "mlx5_10"}, {"mlx5_20", "mlx5_30"}}));
  EXPECT_EQ(view.Variables(), kApart);
}

TEST_F(NcclPathTest, OneNicOfEachSwitchIsNotMerged) {
  for (auto* make : {MakeA100Pcie, MakeGrace}) {
    FakeSysfs sysfs;
    const FakeNode node = make(sysfs);
    std::vector<nccl::NcclNic> nics;
    for (const nccl::TopologyFileNic& nic : node.pod.nics)
      nics.push_back({nic.rdma_device, nic.address, false});
    const auto view = NcclViewOf(sysfs.root(), nics);
    ASSERT_TRUE(view) << Describe(view.error());
    EXPECT_EQ(view->virtual_nics, Groups());
    EXPECT_EQ(view->merge_vfs, nccl::MergeVfs::kDefault);
  }
}

// Switches whose upstream ports are functions of one device: NCCL sees ports of one NIC.
TEST_F(NcclPathTest, SwitchesThatDifferInTheFunctionAreMerged) {
  for (const int n : {0, 1}) {
    const std::string bus = "0000:2" + std::to_string(n);
    sysfs_.AddPf({.address = bus + ":00.0",
                  .netdev = "rail" + std::to_string(n),
                  .total_vfs = 0,
                  .bridges = {"0000:10:01.0", "0000:11:00." + std::to_string(n),
                              "0000:12:0" + std::to_string(n) + ".0"}});
  }
  EXPECT_EQ(View({Nic("mlx5_0", "0000:20:00.0"), Nic("mlx5_1", "0000:21:00.0")}).virtual_nics,
            (Groups{{"mlx5_0", "mlx5_1"}}));
}

// NICs without a NUMA node count for the first processor.
TEST_F(NcclPathTest, NicsWithoutAPlaceAreMerged) {
  const FakeNode node = MakeNextBus(sysfs_);
  const nccl::NcclView view = View({{node.pod.nics[0].rdma_device, node.pod.nics[0].address, false},
                                    {node.pod.nics[3].rdma_device, node.pod.nics[3].address, false}});
  EXPECT_TRUE(view.NeedsTopologyFile());
  EXPECT_EQ(view.virtual_nics, (Groups{{"mlx5_00", "mlx5_30"}}));
}

TEST_F(NcclPathTest, AMissingFunctionIsNamed) {
  const auto view = nccl::NcclViewOf(sysfs_.root(), {Nic("mlx5_4", "0000:1a:00.4")});
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, ErrorCode::kNotFound);
  EXPECT_NE(view.error().message.find("mlx5_4"), std::string::npos);
  EXPECT_NE(view.error().message.find("0000:1a:00.4"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing

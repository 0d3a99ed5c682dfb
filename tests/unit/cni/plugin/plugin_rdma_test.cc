// RDMA and the NCCL configuration: GID indices, exclusive mode, soft RoCE, nccl.conf, CDI.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cni/protocol/cni_result.h"
#include "netns/base/text.h"
#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {
namespace {

constexpr const char* kConf = "/run/railhead/nccl/c1/nccl.conf";

class PluginRdmaTest : public PluginFixture {
 protected:
  [[nodiscard]] nlohmann::json Cdi(int n, int rail = 0) const {
    const auto& bdf = vfs_.at(static_cast<std::size_t>(rail)).at(static_cast<std::size_t>(n));
    return nlohmann::json::parse(File("/run/cdi/railhead-" + bdf + ".json"), nullptr, false);
  }
  // A VF that knows RoCE v2 only.
  std::string AnotherKind(const std::string& address) {
    const auto vfs = kernel_.AddPf(
        {.address = "0000:c3:00.0", .netdev = "pf2", .rdma = "irdma0", .roce = {GidType::kRoceV2}},
        {.count = 1, .rdma = "irdma1"});
    return "\"deviceID\":\"" + vfs[0] + "\"," + Ipam(address);
  }
};

// RoCE v1 and v2 in one table: two default GIDs, then v1 and v2 of the address.
TEST_F(PluginRdmaTest, TwoRoceTypesGiveIndex3) {
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_EQ(File(kConf),
            "NCCL_IB_HCA==mlx5_pf0v0\nNCCL_IB_GID_INDEX=3\nNCCL_IB_TC=106\nNCCL_SOCKET_IFNAME==eth0\n");
}

TEST_F(PluginRdmaTest, OneRoceTypeGivesIndex1) {
  const auto vfs = kernel_.AddPf(
      {.address = "0000:c3:00.0", .netdev = "pf2", .rdma = "irdma0", .roce = {GidType::kRoceV2}},
      {.count = 1, .rdma = "irdma1"});
  ASSERT_TRUE(Add({.config = "\"deviceID\":\"" + vfs[0] + "\"," + Ipam()}));
  EXPECT_NE(File(kConf).find("NCCL_IB_GID_INDEX=1\n"), std::string::npos) << File(kConf);
}

TEST_F(PluginRdmaTest, WaitsForTheGid) {
  kernel_.state().gid_delay = 3;
  const auto added = Add({.config = Usual()});
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_NE(File(kConf).find("NCCL_IB_GID_INDEX=3\n"), std::string::npos);
}

TEST_F(PluginRdmaTest, FailsWithoutGidAndShowsTheTable) {
  kernel_.state().gid_delay = 1000000;
  const auto before = World();
  const auto added = Add({.config = Usual() + R"(,"linkTimeoutSeconds":0)"});
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniTryAgainLater);
  EXPECT_NE(Describe(added.error()).find("no RoCE v2 GID of 10.100.0.10 on net1"), std::string::npos)
      << Describe(added.error());
  EXPECT_NE(Describe(added.error()).find("index 0: fe80::"), std::string::npos) << "the table is shown";
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginRdmaTest, FailsWhenThePortIsNotActive) {
  kernel_.state().Rdma("mlx5_pf0v0")->port_down = true;
  kernel_.Sync();
  const auto before = World();
  const auto added = Add({.config = Usual() + R"(,"linkTimeoutSeconds":0)"});
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().message.find("port 1 is not ACTIVE"), std::string::npos) << added.error().message;
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginRdmaTest, AllNicsOfThePodInOneFile) {
  ASSERT_TRUE(Add({.network = "rail1", .ifname = "net2", .config = Usual(0, 1)}));
  ASSERT_TRUE(Add({.config = Usual(0, 0)}));
  EXPECT_EQ(File(kConf),
            "NCCL_IB_HCA==mlx5_pf0v0,mlx5_pf1v0\nNCCL_IB_GID_INDEX=3\nNCCL_IB_TC=106\n"
            "NCCL_SOCKET_IFNAME==eth0\n")
      << "in the order of the devices, whatever the order of the calls";
  for (const int rail : {0, 1}) {
    const auto mounts = Cdi(0, rail)["devices"][0]["containerEdits"]["mounts"];
    EXPECT_EQ(mounts[0]["hostPath"], sysfs_.directory() + kConf);
    EXPECT_EQ(mounts[0]["containerPath"], "/etc/nccl.conf");
  }
}

// The second ADD finds that NCCL would misplace its NIC. Both devices get the same mounts.
TEST_F(PluginRdmaTest, ATopologyFileWhereNcclWouldMisplaceANic) {
  const std::string topology = "/run/railhead/nccl/c1/topology.xml";
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_EQ(File(topology), "") << "the PF is where NCCL looks for it";
  // Its VFs are on the next bus, where no function has the number 0.
  const auto vfs = kernel_.AddPf({.address = "0000:c3:00.0", .netdev = "pf2", .rdma = "mlx5_pf2"},
                                 {.count = 1, .rdma = "mlx5_next", .offset = 258});
  const Call second{.ifname = "net2", .config = "\"deviceID\":\"" + vfs[0] + "\"," + Ipam("10.100.0.77/24")};
  const auto added = Add(second);
  ASSERT_TRUE(added) << Describe(added.error());
  const std::string text = File(topology);
  for (const char* net : {"<net name=\"mlx5_pf0v0\"", "<net name=\"mlx5_next\""})
    EXPECT_NE(text.find(net), std::string::npos) << text;
  for (const std::string& device : {vfs_[0][0], vfs[0]}) {
    const auto spec = nlohmann::json::parse(File("/run/cdi/railhead-" + device + ".json"));
    const auto mounts = spec["devices"][0]["containerEdits"]["mounts"];
    ASSERT_EQ(mounts.size(), 3U) << spec;
    EXPECT_EQ(mounts[2]["hostPath"], sysfs_.directory() + topology);
    EXPECT_EQ(mounts[2]["containerPath"], "/var/run/nvidia-topologyd/virtualTopology.xml");
  }
  EXPECT_TRUE(Check(second));
  std::filesystem::remove(sysfs_.directory() + topology);
  const auto checked = Check(second);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("topology.xml is missing"), std::string::npos);
  ASSERT_TRUE(Del(second));
  ASSERT_TRUE(Del({.config = Usual()}));
  EXPECT_FALSE(std::filesystem::exists(sysfs_.directory() + "/run/railhead/nccl/c1"));
}

// Without it NCCL would misplace the pod's NICs. ADD reports what is missing, and the way out.
TEST_F(PluginRdmaTest, ATopologyFileThatCannotBeMade) {
  auto fabric = nlohmann::json::parse(File("/etc/railhead/fabric.json"));
  fabric["ncclConfig"]["topology"] = "always";
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json", fabric.dump());
  std::filesystem::remove(sysfs_.directory() + "/proc/cpuinfo");
  const auto before = World();
  const auto added = Add({.config = Usual()});
  ASSERT_FALSE(added);
  EXPECT_NE(Describe(added.error()).find("/proc/cpuinfo"), std::string::npos) << Describe(added.error());
  EXPECT_NE(added.error().hint.find("never"), std::string::npos) << Describe(added.error());
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginRdmaTest, ATopologyFileBecauseTheFabricSaysSo) {
  const std::string topology = "/run/railhead/nccl/c1/topology.xml";
  auto fabric = nlohmann::json::parse(File("/etc/railhead/fabric.json"));
  fabric["ncclConfig"]["topology"] = "always";
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json", fabric.dump());
  const auto added = Add({.config = Usual()});
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_NE(File(topology).find("mlx5_pf0v0"), std::string::npos);
}

TEST_F(PluginRdmaTest, OtherPodsAreNotInIt) {
  ASSERT_TRUE(Add({.config = Usual(0)}));
  const auto first = File(kConf);
  const std::string other = MakePod("pod2");
  ASSERT_TRUE(Add({.container = "c2", .netns = other, .config = Usual(1)}));
  EXPECT_EQ(File(kConf), first);
  EXPECT_NE(File("/run/railhead/nccl/c2/nccl.conf").find("==mlx5_pf0v1\n"), std::string::npos);
}

// RoCE v1 and v2 beside v2 alone: 3 and 1, and the first of its family on each.
TEST_F(PluginRdmaTest, VfsWithDifferentIndicesAreSearchedByNccl) {
  ASSERT_TRUE(Add({.config = Usual(0)}));
  const Call second{.ifname = "net2", .config = AnotherKind("10.100.0.77/24")};
  const auto added = Add(second);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(File(kConf),
            "NCCL_IB_HCA==mlx5_pf0v0,irdma1\nNCCL_IB_GID_INDEX=-1\nNCCL_IB_ADDR_FAMILY=AF_INET\n"
            "NCCL_IB_ADDR_RANGE=10.100.0.0/25\nNCCL_IB_ROCE_VERSION_NUM=2\nNCCL_SOCKET_IFNAME==eth0\n");
  const auto checked = Check(second);
  EXPECT_TRUE(checked) << Describe(checked.error());
}

TEST_F(PluginRdmaTest, VfsOfWhichNcclWouldFindAnotherGidAreRefused) {
  ASSERT_TRUE(Add({.config = Usual(0)}));
  const std::string config = AnotherKind("fd00::77/64");
  const auto before = World();
  const auto conf = File(kConf);
  const auto added = Add({.ifname = "net2", .config = config});
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::kConflict);
  EXPECT_NE(added.error().message.find("different GID indices: mlx5_pf0v0 3, irdma1 1"), std::string::npos)
      << added.error().message;
  EXPECT_NE(added.error().hint.find("index 1: fd00::77"), std::string::npos) << added.error().hint;
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_EQ(File(kConf), conf);
}

// A NIC that failed after the file was written is not left in it.
TEST_F(PluginRdmaTest, FailedNicIsNotLeftInTheFile) {
  ASSERT_TRUE(Add({.config = Usual(0, 0)}));
  const auto conf = File(kConf);
  const std::string spec = sysfs_.directory() + "/run/cdi/railhead-" + vfs_[1][0] + ".json";
  std::filesystem::create_directories(spec + "/in/the/way");
  EXPECT_FALSE(Add({.network = "rail1", .ifname = "net2", .config = Usual(0, 1)}));
  EXPECT_EQ(File(kConf), conf);
}

TEST_F(PluginRdmaTest, CdiNamesTheUverbsNode) {
  ASSERT_TRUE(Add({.config = Usual()}));
  const auto nodes = Cdi(0)["devices"][0]["containerEdits"]["deviceNodes"];
  const int number = kernel_.state().Rdma("mlx5_pf0v0")->uverbs;
  EXPECT_EQ(nodes[0]["path"], "/dev/infiniband/uverbs" + std::to_string(number));
  EXPECT_EQ(nodes[1]["path"], "/dev/infiniband/rdma_cm");
}

TEST_F(PluginRdmaTest, NcclConfigOffStillGivesTheDevice) {
  ASSERT_TRUE(Add({.config = Usual() + R"(,"ncclConfig":"off")"}));
  EXPECT_EQ(File(kConf), "");
  const auto edits = Cdi(0)["devices"][0]["containerEdits"];
  EXPECT_FALSE(edits.contains("mounts"));
  EXPECT_TRUE(edits.contains("deviceNodes"));
}

// Pools in sriov-network-device-plugin's format have the NCCL configuration off.
TEST_F(PluginRdmaTest, PoolWithoutNcclConfigLeavesTheImagesFile) {
  Allocate({vfs_[0][0]}, DeviceNodeMode::kCdi, NcclConfigPolicy::kOff);
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_EQ(File(kConf), "");
  const auto edits = Cdi(0)["devices"][0]["containerEdits"];
  EXPECT_FALSE(edits.contains("mounts"));
  EXPECT_TRUE(edits.contains("deviceNodes"));
}

// A storage NIC beside the rails: not for NCCL, whatever its GID index.
TEST_F(PluginRdmaTest, NicsWithoutNcclConfigAreNotInThePodsFile) {
  Allocate({vfs_[0][0]}, DeviceNodeMode::kCdi, NcclConfigPolicy::kOff);
  Allocate({vfs_[1][0]});
  ASSERT_TRUE(Add({.config = Usual(0, 0)}));
  ASSERT_TRUE(Add({.network = "rail1", .ifname = "net2", .config = Usual(0, 1)}));
  EXPECT_NE(File(kConf).find("NCCL_IB_HCA==mlx5_pf1v0\n"), std::string::npos) << File(kConf);
}

TEST_F(PluginRdmaTest, WithoutAddressTheImageKeepsItsFile) {
  ASSERT_TRUE(Add({.config = Device() + R"(,"ipam":{})"}));
  EXPECT_EQ(File(kConf), "");
  const auto edits = Cdi(0)["devices"][0]["containerEdits"];
  EXPECT_FALSE(edits.contains("mounts"));
  EXPECT_TRUE(edits.contains("deviceNodes"));
}

TEST_F(PluginRdmaTest, RequiredNcclConfigWithoutRdmaOrAddress) {
  kernel_.state().Unbind(*kernel_.state().Function(vfs_[0][1]));
  kernel_.state().Function(vfs_[0][1])->rdma_name.clear();
  kernel_.state().Bind(*kernel_.state().Function(vfs_[0][1]));
  kernel_.Sync();
  Allocate({vfs_[0][0], vfs_[0][1]});
  const auto before = World();
  const auto no_rdma = Add({.config = Usual(1)});
  ASSERT_FALSE(no_rdma);
  EXPECT_NE(no_rdma.error().message.find("has no RDMA device"), std::string::npos);
  const auto no_address = Add({.config = Device(0) + R"(,"ipam":{})"});
  ASSERT_FALSE(no_address);
  EXPECT_NE(no_address.error().message.find("got no address"), std::string::npos);
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginRdmaTest, MountWritesOneFilePerDevice) {
  Allocate({vfs_[0][0], vfs_[1][0]}, DeviceNodeMode::kMount);
  const auto path = [this](int rail) {
    return "/run/railhead/nccl-device/" + vfs_[static_cast<std::size_t>(rail)][0] + "/nccl.conf";
  };
  // What a runtime made of the missing mount source.
  std::filesystem::create_directories(sysfs_.directory() + path(0));
  ASSERT_TRUE(Add({.config = Usual(0, 0)}));
  ASSERT_TRUE(Add({.network = "rail1", .ifname = "net2", .config = Usual(0, 1)}));
  EXPECT_NE(File(path(0)).find("==mlx5_pf0v0,mlx5_pf1v0\n"), std::string::npos) << File(path(0));
  EXPECT_EQ(File(path(0)), File(path(1)));
  ASSERT_TRUE(Del({.config = Usual(0, 0)}));
  EXPECT_EQ(File(path(0)), "") << "emptied: it may be mounted";
}

TEST_F(PluginRdmaTest, SocketInterfaceIsTheDefaultRoutes) {
  auto& routes = kernel_.state().Namespace(pod_)->routes;
  std::erase_if(routes, [](const Route& route) { return route.destination.length == 0; });
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_EQ(File(kConf).find("NCCL_SOCKET_IFNAME"), std::string::npos) << "unknown: not guessed";
}

class ExclusiveTest : public PluginRdmaTest {
 protected:
  void SetUp() override {
    PluginRdmaTest::SetUp();
    kernel_.SetRdmaMode(RdmaNetnsMode::kExclusive);
    kernel_.Sync();
  }
};

TEST_F(ExclusiveTest, MovesTheRdmaDeviceAndBack) {
  const auto before = World();
  const Call call{.config = Usual(2)};
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(kernel_.state().Rdma("mlx5_pf0v2")->ns, pod_);
  EXPECT_NE(File(kConf).find("==mlx5_pf0v2\nNCCL_IB_GID_INDEX=3\n"), std::string::npos);
  EXPECT_TRUE(Check(call));
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(ChangedSince(before), "");
}

// The uverbs number is another one after a move: what the spec names is what is.
TEST_F(ExclusiveTest, CdiNamesTheNodeAfterTheMove) {
  // A free number below those of the other devices.
  kernel_.state().Unbind(*kernel_.state().Function(vfs_[0][0]));
  kernel_.Sync();
  const int before = kernel_.state().Rdma("mlx5_pf1v3")->uverbs;
  ASSERT_TRUE(Add({.config = Device(3, 1) + "," + Ipam("10.200.0.9/24")}));
  const int after = kernel_.state().Rdma("mlx5_pf1v3")->uverbs;
  ASSERT_NE(before, after);
  EXPECT_EQ(Cdi(3, 1)["devices"][0]["containerEdits"]["deviceNodes"][0]["path"],
            "/dev/infiniband/uverbs" + std::to_string(after));
}

TEST_F(ExclusiveTest, DelAfterTheNamespaceVanished) {
  ASSERT_TRUE(Add({.config = Usual()}));
  kernel_.RemoveNamespace(pod_);
  const auto deleted = Del({.config = Usual()});
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(kernel_.state().Rdma("mlx5_pf0v0")->ns, kHost);
  EXPECT_EQ(Files(), "");
}

TEST_F(ExclusiveTest, RefusedMoveLeavesNothing) {
  const auto before = World();
  kernel_.FailEvery("MoveDevice", EBUSY, "pod1");
  const auto added = Add({.config = Usual()});
  kernel_.StopFailing();
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().message.find("moving RDMA device mlx5_pf0v0"), std::string::npos);
  EXPECT_EQ(ChangedSince(before), "");
}

class SoftRoceTest : public PluginRdmaTest {
 protected:
  void MakeNics() override {
    for (const int rail : {0, 1}) {
      vfs_.push_back(kernel_.AddPf(
          {.address = rail == 0 ? "0000:43:00.0" : "0000:83:00.0", .netdev = "pf" + std::to_string(rail)},
          {.count = 4}));
    }
  }
  void SetUp() override {
    PluginRdmaTest::SetUp();
    WriteFabric(R"(,"softRoce":true)");
  }
};

TEST_F(SoftRoceTest, MadeInThePodAndRemoved) {
  const auto before = World();
  const auto added = Add({.config = Usual()});
  ASSERT_TRUE(added) << Describe(added.error());
  ASSERT_EQ(kernel_.state().rdmas.size(), 1U);
  EXPECT_EQ(kernel_.state().rdmas[0].ns, pod_);
  EXPECT_NE(File(kConf).find("NCCL_IB_GID_INDEX=1\n"), std::string::npos) << "one RoCE type";
  EXPECT_TRUE(Check({.config = Usual()}));
  ASSERT_TRUE(Del({.config = Usual()}));
  EXPECT_EQ(ChangedSince(before), "");
}

// NCCL finds no place of such a device, and since 2.24 fails with two of them. 2.28.7 crashes without mlx5.
TEST_F(SoftRoceTest, NcclGetsItsPlaceAndItsKind) {
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_NE(File(kConf).find("NCCL_GIN_TYPE=2\n"), std::string::npos) << File(kConf);
  ASSERT_TRUE(Add({.network = "rail1", .ifname = "net2", .config = Usual(0, 1)}));
  const std::string topology = File("/run/railhead/nccl/c1/topology.xml");
  for (const auto& rdma : kernel_.state().rdmas)
    EXPECT_NE(topology.find("<net name=\"" + rdma.name + "\""), std::string::npos) << topology;
}

TEST_F(PluginRdmaTest, TheGinTypeIsForPodsWithoutMlx5) {
  const auto vfs =
      kernel_.AddPf({.address = "0000:c3:00.0", .netdev = "pf2", .rdma = "irdma0", .driver = {.name = "ice"}},
                    {.count = 1, .rdma = "irdma1"});
  const Call other{.ifname = "net2", .config = "\"deviceID\":\"" + vfs[0] + "\"," + Ipam("10.100.0.77/24")};
  ASSERT_TRUE(Add(other));
  EXPECT_NE(File(kConf).find("NCCL_GIN_TYPE=2\n"), std::string::npos) << File(kConf);
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_EQ(File(kConf).find("NCCL_GIN_TYPE"), std::string::npos) << "one is mlx5's";
}

TEST_F(SoftRoceTest, NamesAreNodeWide) {
  ASSERT_TRUE(Add({.config = Usual(0)}));
  const std::string other = MakePod("pod2");
  const auto second = Add({.container = "c2", .netns = other, .config = Usual(1)});
  ASSERT_TRUE(second) << Describe(second.error());
  ASSERT_EQ(kernel_.state().rdmas.size(), 2U);
  EXPECT_NE(kernel_.state().rdmas[0].name, kernel_.state().rdmas[1].name);
}

TEST_F(SoftRoceTest, WithoutTheModuleItSaysSo) {
  kernel_.state().has_rxe = false;
  const auto before = World();
  const auto added = Add({.config = Usual()});
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniUnsupported);
  EXPECT_EQ(ChangedSince(before), "");
}

// Someone else's device of that name is not ours to remove.
TEST_F(SoftRoceTest, ForeignDeviceOfThatNameSurvives) {
  ASSERT_TRUE(Add({.config = Usual()}));
  const std::string name = kernel_.state().rdmas.at(0).name;
  ASSERT_TRUE(Del({.config = Usual()}));
  ASSERT_EQ(kernel_.state().AddRxe(kHost, name, "pf1"), 0);
  kernel_.Sync();
  const auto before = World();
  const auto added = Add({.config = Usual() + R"(,"linkTimeoutSeconds":1)"});
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniExists) << Describe(added.error());
  EXPECT_EQ(ChangedSince(before), "");
}

// The kernel removes it later than it returns the VF to the host.
TEST_F(SoftRoceTest, WaitsForTheDeviceOfANamespaceThatWasDeleted) {
  kernel_.ClearLog();
  ASSERT_TRUE(Add({.config = Usual()}));
  const auto calls = Split(kernel_.Log(), '\n');
  const auto made = std::find_if(calls.begin(), calls.end(), [](const std::string& call) {
    return call.find("AddRxe") != std::string::npos;
  });
  ASSERT_NE(made, calls.end());
  ASSERT_TRUE(Del({.config = Usual()}));
  kernel_.FailCall(static_cast<int>(made - calls.begin()) + 1, EEXIST);
  const auto added = Add({.config = Usual()});
  EXPECT_TRUE(added) << Describe(added.error());
  EXPECT_NE(kernel_.Log().find("AddRxe"), kernel_.Log().rfind("AddRxe")) << "it did not fail the first time";
}

TEST_F(SoftRoceTest, GoesWithTheNamespace) {
  ASSERT_TRUE(Add({.config = Usual()}));
  kernel_.RemoveNamespace(pod_);
  EXPECT_TRUE(kernel_.state().rdmas.empty());
  const auto deleted = Del({.config = Usual()});
  EXPECT_TRUE(deleted) << Describe(deleted.error());
}

TEST_F(SoftRoceTest, RefusedOnHardware) {
  const auto vfs = kernel_.AddPf({.address = "0000:c3:00.0", .netdev = "pf2", .rdma = "mlx5_9"},
                                 {.count = 1, .rdma = "mlx5_10"});
  const auto before = World();
  const auto added = Add({.config = "\"deviceID\":\"" + vfs[0] + R"(","softRoce":true,)" + Ipam()});
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().message.find("has the RDMA device mlx5_10"), std::string::npos);
  EXPECT_EQ(ChangedSince(before), "");
}

}  // namespace
}  // namespace railhead::testing

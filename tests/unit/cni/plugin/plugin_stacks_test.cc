// The configuration of stacks other than NCCL: the mounts and variables of every container of the pod, and
// CHECK.
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {
namespace {

class PluginStacksTest : public PluginFixture {
 protected:
  void Tell(const nlohmann::json& stacks) {
    auto fabric = nlohmann::json::parse(File("/etc/railhead/fabric.json"));
    fabric["ncclConfig"]["stacks"] = stacks;
    WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json", fabric.dump());
  }
  [[nodiscard]] nlohmann::json Edits(const std::string& bdf) const {
    const auto spec = nlohmann::json::parse(File("/run/cdi/railhead-" + bdf + ".json"), nullptr, false);
    return spec["devices"][0]["containerEdits"];
  }
  // Where a container sees which file of the sandbox's.
  [[nodiscard]] std::map<std::string, std::string> Mounts(const std::string& bdf) const {
    std::map<std::string, std::string> mounts;
    const std::string directory = sysfs_.directory() + "/run/railhead/nccl/c1/";
    for (const auto& mount : Edits(bdf).value("mounts", nlohmann::json::array()))
      mounts[mount["containerPath"]] = mount["hostPath"].get<std::string>().substr(directory.size());
    return mounts;
  }
  // A VF that knows RoCE v2 only.
  std::string AnotherKind(const std::string& addresses) {
    const auto vfs = kernel_.AddPf(
        {.address = "0000:c3:00.0", .netdev = "pf2", .rdma = "irdma0", .roce = {GidType::kRoceV2}},
        {.count = 1, .rdma = "irdma1"});
    return "\"deviceID\":\"" + vfs[0] + "\"," + Addresses(addresses);
  }
  static std::string Addresses(const std::string& json) {
    return R"("ipam":{"type":"test-ipam","address":)" + json + "}";
  }

  const std::string ucx_ = "/run/railhead/nccl/c1/ucx.conf";
};

TEST_F(PluginStacksTest, RcclReadsTheSameFileWithoutAsking) {
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_EQ(Mounts(vfs_[0][0]), (std::map<std::string, std::string>{{"/etc/nccl.conf", "nccl.conf"},
                                                                    {"/etc/rccl.conf", "nccl.conf"}}));
  EXPECT_FALSE(Edits(vfs_[0][0]).contains("env")) << "nothing of the user's is replaced unasked";
}

TEST_F(PluginStacksTest, NoneButNccl) {
  Tell(nlohmann::json::array());
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_EQ(Mounts(vfs_[0][0]), (std::map<std::string, std::string>{{"/etc/nccl.conf", "nccl.conf"}}));
}

// Attachments follow each other. In the end all devices of the pod have the same configuration.
TEST_F(PluginStacksTest, AllOfThemInEveryDeviceOfThePod) {
  Tell({"rccl", "ucx", "nvshmem", "gloo", "openmpi"});
  ASSERT_TRUE(Add({.config = Usual(0, 0)}));
  const Call second{.network = "rail1", .ifname = "net2", .config = Usual(0, 1)};
  ASSERT_TRUE(Add(second));
  EXPECT_EQ(File(ucx_),
            "UCX_NET_DEVICES=mlx5_pf0v0:1,mlx5_pf1v0:1,eth0\nUCX_IB_GID_INDEX=3\n"
            "UCX_IB_TRAFFIC_CLASS=106\n");
  for (const auto& bdf : {vfs_[0][0], vfs_[1][0]}) {
    EXPECT_EQ(Mounts(bdf), (std::map<std::string, std::string>{{"/etc/nccl.conf", "nccl.conf"},
                                                               {"/etc/rccl.conf", "nccl.conf"},
                                                               {"/etc/ucx/ucx.conf", "ucx.conf"}}));
    EXPECT_EQ(
        Edits(bdf)["env"],
        (nlohmann::json{"UCX_CONFIG_DIR=/etc/ucx", "NVSHMEM_IB_GID_INDEX=3", "NVSHMEM_IB_TRAFFIC_CLASS=106",
                        "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME==eth0", "GLOO_SOCKET_IFNAME=eth0",
                        "TP_SOCKET_IFNAME=eth0", "OMPI_MCA_btl_tcp_if_include=eth0",
                        "OMPI_MCA_oob_tcp_if_include=eth0", "PRTE_MCA_prte_if_include=eth0"}));
  }
  EXPECT_TRUE(Check(second));
}

// The second device changes the configuration of the first.
TEST_F(PluginStacksTest, EarlierDevicesAreConfiguredAgain) {
  Tell({"nvshmem"});
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_EQ(Edits(vfs_[0][0])["env"][0], "NVSHMEM_IB_GID_INDEX=3");
  ASSERT_TRUE(Add({.ifname = "net2", .config = AnotherKind(R"("10.100.0.77/24")")}));
  EXPECT_EQ(Edits(vfs_[0][0])["env"][1], "NVSHMEM_IB_GID_INDEX=-1") << Edits(vfs_[0][0]);
}

TEST_F(PluginStacksTest, CheckMissesWhatIsMounted) {
  Tell({"ucx"});
  ASSERT_TRUE(Add({.config = Usual()}));
  ASSERT_TRUE(Check({.config = Usual()}));
  std::filesystem::remove(sysfs_.directory() + ucx_);
  const auto checked = Check({.config = Usual()});
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("ucx.conf is missing"), std::string::npos)
      << checked.error().message;
  ASSERT_TRUE(Del({.config = Usual()}));
  EXPECT_FALSE(std::filesystem::exists(sysfs_.directory() + "/run/railhead/nccl/c1"));
}

TEST_F(PluginStacksTest, CheckSeesAFileThatNamesAnotherNic) {
  Tell({"ucx"});
  ASSERT_TRUE(Add({.config = Usual()}));
  WriteFileAt(sysfs_.directory() + ucx_, "UCX_NET_DEVICES=mlx5_0:1\nUCX_IB_GID_INDEX=1\n");
  const auto checked = Check({.config = Usual()});
  ASSERT_FALSE(checked);
  for (const char* part : {"ucx.conf does not name mlx5_pf0v0", "UCX_IB_GID_INDEX is 1, should be 3"})
    EXPECT_NE(checked.error().message.find(part), std::string::npos) << checked.error().message;
}

// After ADD another GID takes a lower index than the pod's own, which keeps its index. A search by address
// family now finds the other GID.
TEST_F(PluginStacksTest, CheckSearchesAgain) {
  Tell({"ucx"});
  ASSERT_TRUE(Add({.config = Usual()}));
  const Call second{.ifname = "net2", .config = AnotherKind(R"(["fd00::77/64","10.100.0.77/24"])")};
  const auto added = Add(second);
  ASSERT_TRUE(added) << Describe(added.error());
  ASSERT_NE(File("/run/railhead/nccl/c1/nccl.conf").find("NCCL_IB_GID_INDEX=-1"), std::string::npos);
  ASSERT_TRUE(Check(second));
  FakeNetdev* nic = kernel_.state().Find(pod_, "net2");
  ASSERT_NE(nic, nullptr);
  ASSERT_EQ(kernel_.state().DeleteAddress(*nic, *IpPrefix::Parse("fd00::77/64")), 0);
  ASSERT_EQ(kernel_.state().AddAddress(*nic, *IpPrefix::Parse("10.100.0.3/24")), 0);
  kernel_.Sync();
  const auto checked = Check(second);
  ASSERT_FALSE(checked);
  for (const char* part :
       {"irdma1: the GID index that NCCL finds is 1 (10.100.0.3), should be 2 (10.100.0.77)",
        "irdma1: the GID index that UCX finds is 1 (10.100.0.3), should be 2"})
    EXPECT_NE(checked.error().message.find(part), std::string::npos) << checked.error().message;
}

// NCCL has a variable for an address range, UCX has none.
TEST_F(PluginStacksTest, UcxThatWouldTakeAnotherGidIsRefused) {
  ASSERT_TRUE(Add({.config = Device() + "," + Addresses(R"(["fd00::10/64","10.100.0.10/24"])")}));
  FakeNetdev* nic = kernel_.state().Find(pod_, "net1");
  ASSERT_NE(nic, nullptr);
  ASSERT_EQ(kernel_.state().DeleteAddress(*nic, *IpPrefix::Parse("fd00::10/64")), 0);
  ASSERT_EQ(kernel_.state().AddAddress(*nic, *IpPrefix::Parse("192.0.2.1/24")), 0);
  kernel_.Sync();
  const std::string another = AnotherKind(R"("10.100.0.77/24")");
  Tell({"ucx"});
  const auto before = World();
  const auto refused = Add({.ifname = "net2", .config = another});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_NE(
      refused.error().message.find("not every UCX since 1.15 would take that of 10.100.0.10 on mlx5_pf0v0"),
      std::string::npos)
      << refused.error().message;
  EXPECT_EQ(ChangedSince(before), "");
  Tell(nlohmann::json::array());
  EXPECT_TRUE(Add({.ifname = "net2", .config = another})) << "NCCL alone is well served";
}

}  // namespace
}  // namespace railhead::testing

// The configuration of stacks other than NCCL.
#include <gtest/gtest.h>

#include <map>

#include "cni/nccl/stack_variables.h"
#include "cni/nccl/ucx_conf.h"
#include "tests/support/process.h"
#include "tests/support/temp_root.h"

namespace railhead::nccl {
namespace {

using testing::RunProcess;
using testing::TempRoot;
using Environment = std::map<std::string, std::string>;

IpAddress Ip(const char* text) {
  return *IpAddress::Parse(text);
}
GidEntry Gid(int index, const char* address, GidType type = GidType::kRoceV2) {
  return {index, GidOf(Ip(address)), type, "net1"};
}

NcclConfig TwoNics() {
  NcclConfig config;
  config.nics = {{"mlx5_4", Ip("10.100.0.7"), 3, 106, 5}, {"mlx5_9", Ip("10.101.0.7"), 3, 106, 5}};
  config.gids = 3;
  config.socket_ifname = "eth0";
  return config;
}

NcclConfig DifferentIndices() {
  NcclConfig config = TwoNics();
  config.nics[1].gid_index = 1;
  config.gids = GidSearch{*IpPrefix::Parse("10.100.0.0/15")};
  return config;
}

Result<std::vector<GidEntry>> NoTable(const NicConfig& nic) {
  ADD_FAILURE() << "the table of " << nic.rdma_device << " is read for nothing";
  return std::vector<GidEntry>();
}

TEST(UcxConfTest, Golden) {
  EXPECT_EQ(
      *UcxConf(TwoNics(), NoTable),
      "UCX_NET_DEVICES=mlx5_4:1,mlx5_9:1,eth0\nUCX_IB_GID_INDEX=3\nUCX_IB_TRAFFIC_CLASS=106\nUCX_IB_SL=5\n");
}

TEST(UcxConfTest, OnlyWhatIsKnownAndTheSameOnAllNics) {
  NcclConfig config = TwoNics();
  config.socket_ifname.clear();
  config.nics[1].traffic_class.reset();
  config.nics[0].service_level = 1;
  EXPECT_EQ(*UcxConf(config, NoTable), "UCX_NET_DEVICES=mlx5_4:1,mlx5_9:1\nUCX_IB_GID_INDEX=3\n");
}

TEST(UcxConfTest, NoIndexWhereUcxFindsTheRightOnes) {
  const auto conf = UcxConf(DifferentIndices(), [](const NicConfig& nic) -> Result<std::vector<GidEntry>> {
    if (nic.rdma_device == "mlx5_9") return {{Gid(0, "fe80::1"), Gid(1, "10.101.0.7")}};
    return {{Gid(0, "fe80::1", GidType::kRoceV1), Gid(1, "fe80::1"), Gid(2, "10.100.0.7", GidType::kRoceV1),
             Gid(3, "10.100.0.7")}};
  });
  ASSERT_TRUE(conf) << Describe(conf.error());
  EXPECT_EQ(conf->find("GID_INDEX"), std::string::npos) << *conf;
}

TEST(UcxConfTest, RefusedWhereUcxWouldTakeAnother) {
  const auto conf = UcxConf(DifferentIndices(), [](const NicConfig& nic) -> Result<std::vector<GidEntry>> {
    if (nic.rdma_device == "mlx5_9") return {{Gid(0, "fe80::1"), Gid(1, "10.101.0.7")}};
    return {{Gid(1, "192.0.2.1"), Gid(3, "10.100.0.7")}};
  });
  ASSERT_FALSE(conf);
  EXPECT_EQ(conf.error().code, ErrorCode::kConflict);
  EXPECT_NE(conf.error().message.find("10.100.0.7 on mlx5_4"), std::string::npos) << conf.error().message;
  EXPECT_NE(conf.error().hint.find("index 1: ::ffff:192.0.2.1"), std::string::npos) << conf.error().hint;
}

TEST(UcxPicksTest, WhatEveryReleaseTakes) {
  EXPECT_EQ(UcxPicks({Gid(0, "fe80::1"), Gid(1, "fd00::7"), Gid(2, "10.0.0.7"), Gid(3, "10.0.0.8")}), 2);
  EXPECT_EQ(UcxPicks({Gid(0, "fe80::1"), Gid(1, "fd00::7")}), std::nullopt) << "before 1.21 index 0";
  EXPECT_EQ(UcxPicks({Gid(0, "fd00::7"), Gid(1, "fe80::1")}), 0);
  EXPECT_EQ(UcxPicks({Gid(0, "10.0.0.7", GidType::kRoceV1), Gid(1, "fe80::1")}), 1);
  EXPECT_EQ(UcxPicks({Gid(0, "10.0.0.7", GidType::kRoceV1)}), std::nullopt);
}

using Lines = std::vector<Variable>;

TEST(NvshmemTest, AnIndexAndTheClusterNetwork) {
  EXPECT_EQ(NvshmemVariables(TwoNics()), (Lines{{"NVSHMEM_IB_GID_INDEX", "3"},
                                                {"NVSHMEM_IB_TRAFFIC_CLASS", "106"},
                                                {"NVSHMEM_IB_SL", "5"},
                                                {"NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "=eth0"}}));
  EXPECT_EQ(NvshmemVariables({}), Lines{});
}

TEST(NvshmemTest, TheSearchIsNccls) {
  const auto lines = NvshmemVariables(DifferentIndices());
  ASSERT_GE(lines.size(), 4U);
  EXPECT_EQ(Lines(lines.begin(), lines.begin() + 4), (Lines{{"NVSHMEM_IB_GID_INDEX", "-1"},
                                                            {"NVSHMEM_IB_ADDR_FAMILY", "AF_INET"},
                                                            {"NVSHMEM_IB_ADDR_RANGE", "10.100.0.0/15"},
                                                            {"NVSHMEM_IB_ROCE_VERSION_NUM", "2"}}));
}

TEST(NvshmemTest, DevicesThatUdevRenamed) {
  NcclConfig config = TwoNics();
  config.nics[0].rdma_device = "rocep67s0v0";
  config.nics[1].rdma_device = "rocep131s0v0";
  EXPECT_EQ(NvshmemVariables(config).front(), (Variable{"NVSHMEM_HCA_PREFIX", "rocep"}));
  config.nics[1].rdma_device = "mlx5_9";
  EXPECT_EQ(NvshmemVariables(config).front(), (Variable{"NVSHMEM_HCA_PREFIX", ""})) << "nothing in common";
  config.nics[0].rdma_device = "mlx5_4";
  EXPECT_EQ(NvshmemVariables(config).front().first, "NVSHMEM_IB_GID_INDEX") << "mlx5 is the default";
}

TEST(SocketsTest, OnlyOnTheClusterNetwork) {
  EXPECT_EQ(GlooVariables(TwoNics()), (Lines{{"GLOO_SOCKET_IFNAME", "eth0"}, {"TP_SOCKET_IFNAME", "eth0"}}));
  EXPECT_EQ(OpenMpiVariables(TwoNics()), (Lines{{"OMPI_MCA_btl_tcp_if_include", "eth0"},
                                                {"OMPI_MCA_oob_tcp_if_include", "eth0"},
                                                {"PRTE_MCA_prte_if_include", "eth0"}}));
  NcclConfig unknown = TwoNics();
  unknown.socket_ifname.clear();
  EXPECT_TRUE(GlooVariables(unknown).empty());
  EXPECT_TRUE(OpenMpiVariables(unknown).empty());
}

// Debian's UCX and Open MPI read our files. Their own tools print the resulting values.

class UcxReadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto conf = UcxConf(TwoNics(), [](const NicConfig&) { return std::vector<GidEntry>(); });
    ASSERT_TRUE(conf);
    temp_.Write("/ucx.conf", *conf);
  }
  // Its configuration, a line "NAME=VALUE" each.
  [[nodiscard]] std::string Ends(Environment more = {}) const {
    more["UCX_CONFIG_DIR"] = temp_.directory();
    more["PATH"] = "/usr/bin:/bin";
    const auto run = RunProcess({"/usr/bin/ucx_info", "-c"}, more, "");
    EXPECT_EQ(run.status, 0) << run.err;
    return "\n" + run.out;
  }

  TempRoot temp_;
};

TEST_F(UcxReadsTest, EveryLineOfTheFile) {
  const std::string ends = Ends();
  for (const char* line : {"\nUCX_NET_DEVICES=mlx5_4:1,mlx5_9:1,eth0\n", "\nUCX_IB_GID_INDEX=3\n",
                           "\nUCX_RC_VERBS_TRAFFIC_CLASS=106\n", "\nUCX_RC_MLX5_SL=5\n"})
    EXPECT_NE(ends.find(line), std::string::npos) << line << ends;
}

TEST_F(UcxReadsTest, TheUsersEnvironmentWins) {
  EXPECT_NE(Ends({{"UCX_IB_GID_INDEX", "7"}}).find("\nUCX_IB_GID_INDEX=7\n"), std::string::npos);
}

TEST(OpenMpiReadsTest, TheInterfacesOfItsOwnTraffic) {
  Environment environment{{"PATH", "/usr/bin:/bin"}, {"HOME", "/nonexistent"}};
  for (const auto& [name, value] : OpenMpiVariables(TwoNics())) environment[name] = value;
  const auto run = RunProcess({"/usr/bin/ompi_info", "--all", "--parsable"}, environment, "");
  ASSERT_EQ(run.status, 0) << run.err;
  for (const char* parameter : {"btl:tcp:param:btl_tcp_if_include", "oob:tcp:param:oob_tcp_if_include"}) {
    EXPECT_NE(run.out.find(std::string("mca:") + parameter + ":value:eth0\n"), std::string::npos)
        << parameter;
    EXPECT_NE(run.out.find(std::string("mca:") + parameter + ":source:environment\n"), std::string::npos);
  }
}

}  // namespace
}  // namespace railhead::nccl

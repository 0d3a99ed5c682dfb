// The text of nccl.conf.
#include <gtest/gtest.h>

#include "cni/nccl/nccl_config.h"

namespace railhead::nccl {
namespace {

IpAddress Ip(const char* text) {
  return *IpAddress::Parse(text);
}

Handoff TwoNics() {
  Handoff handoff;
  handoff.nics = {{"mlx5_4", Ip("10.100.0.7"), 3, 106, {}}, {"mlx5_9", Ip("10.101.0.7"), 3, 106, {}}};
  handoff.gids = 3;
  return handoff;
}

TEST(NcclConfTest, Golden) {
  Handoff handoff = TwoNics();
  handoff.socket_ifname = "eth0";
  handoff.env = {{"NCCL_DEBUG", "INFO"}};
  EXPECT_EQ(*NcclConf(handoff),
            "NCCL_IB_HCA==mlx5_4,mlx5_9\nNCCL_IB_GID_INDEX=3\nNCCL_IB_TC=106\nNCCL_SOCKET_IFNAME==eth0\n"
            "NCCL_DEBUG=INFO\n");
}

TEST(NcclConfTest, OneClassForAllOrNone) {
  Handoff handoff = TwoNics();
  handoff.nics[0].service_level = handoff.nics[1].service_level = 5;
  EXPECT_NE(NcclConf(handoff)->find("NCCL_IB_TC=106\nNCCL_IB_SL=5\n"), std::string::npos);
  handoff.nics[1].traffic_class = 41;
  handoff.nics[0].service_level.reset();
  EXPECT_EQ(*NcclConf(handoff), "NCCL_IB_HCA==mlx5_4,mlx5_9\nNCCL_IB_GID_INDEX=3\n");
}

TEST(NcclConfTest, ASearchForGids) {
  Handoff handoff = TwoNics();
  handoff.gids = GidSearch{*IpPrefix::Parse("10.100.0.0/15")};
  EXPECT_EQ(*NcclConf(handoff),
            "NCCL_IB_HCA==mlx5_4,mlx5_9\nNCCL_IB_GID_INDEX=-1\nNCCL_IB_ADDR_FAMILY=AF_INET\n"
            "NCCL_IB_ADDR_RANGE=10.100.0.0/15\nNCCL_IB_ROCE_VERSION_NUM=2\nNCCL_IB_TC=106\n");
  handoff.gids = GidSearch{*IpPrefix::Parse("fd00::/48")};
  EXPECT_NE(NcclConf(handoff)->find("=AF_INET6\nNCCL_IB_ADDR_RANGE=fd00::/48\n"), std::string::npos);
}

TEST(NcclConfTest, WhatThePlacesAskFor) {
  Handoff handoff = TwoNics();
  handoff.paths = {{"NCCL_IB_MERGE_VFS", "0"}, {"NCCL_IB_MERGE_NICS", "0"}, {"NCCL_NET_MERGE_LEVEL", "LOC"}};
  EXPECT_EQ(*NcclConf(handoff),
            "NCCL_IB_HCA==mlx5_4,mlx5_9\nNCCL_IB_GID_INDEX=3\nNCCL_IB_TC=106\nNCCL_IB_MERGE_VFS=0\n"
            "NCCL_IB_MERGE_NICS=0\nNCCL_NET_MERGE_LEVEL=LOC\n");
}

TEST(NcclConfTest, TheFabricsLinesStandForOurs) {
  Handoff handoff = TwoNics();
  handoff.socket_ifname = "eth0";
  handoff.env = {{"NCCL_SOCKET_IFNAME", "=bond0"}, {"NCCL_IB_TC", "52"}};
  EXPECT_EQ(*NcclConf(handoff),
            "NCCL_IB_HCA==mlx5_4,mlx5_9\nNCCL_IB_GID_INDEX=3\nNCCL_SOCKET_IFNAME==bond0\nNCCL_IB_TC=52\n");
}

TEST(NcclConfTest, NamesOnlyWhatIsKnown) {
  EXPECT_EQ(*NcclConf({}), "");
  Handoff handoff;
  handoff.nics = {{"rxe0", Ip("10.0.0.1"), 1, {}, {}}};
  handoff.gids = 1;
  EXPECT_EQ(*NcclConf(handoff), "NCCL_IB_HCA==rxe0\nNCCL_IB_GID_INDEX=1\n");
}

TEST(NcclConfTest, ValuesThatNcclWouldCutAreRefused) {
  Handoff handoff;
  handoff.nics = {{std::string(1021, 'm'), Ip("10.0.0.1"), 3, {}, {}}};
  handoff.gids = 3;
  EXPECT_TRUE(NcclConf(handoff)) << "with '=' before it 1022 bytes";
  handoff.nics[0].rdma_device += "m";
  EXPECT_EQ(NcclConf(handoff).error().code, ErrorCode::kInvalid);
}

TEST(NcclConfTest, ValuesAreFoundAgain) {
  const std::string conf = *NcclConf(TwoNics());
  EXPECT_EQ(ValueIn(conf, "NCCL_IB_HCA"), "mlx5_4,mlx5_9");
  EXPECT_EQ(ValueIn(conf, "NCCL_IB_GID_INDEX"), "3");
  EXPECT_EQ(ValueIn(conf, "NCCL_IB_GID"), std::nullopt);
}

}  // namespace
}  // namespace railhead::nccl

// nccl.conf: its text, and which GIDs it has NCCL use.
#include "cni/nccl/nccl_config.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "cni/nccl/gid_selection.h"
#include "cni/nccl/nccl_conf.h"
#include "cni/nccl/nic_config.h"

namespace railhead::nccl {
namespace {

using Table = std::vector<GidEntry>;

IpAddress Ip(const std::string& text) {
  return *IpAddress::Parse(text);
}

NcclConfig TwoNics() {
  NcclConfig config;
  config.nics = {{"mlx5_4", Ip("10.100.0.7"), 3, 106, {}}, {"mlx5_9", Ip("10.101.0.7"), 3, 106, {}}};
  config.gids = 3;
  return config;
}

TEST(NcclConfTest, Golden) {
  NcclConfig config = TwoNics();
  config.socket_ifname = "eth0";
  config.env = {{"NCCL_DEBUG", "INFO"}};
  EXPECT_EQ(*NcclConf(config),
            "NCCL_IB_HCA==mlx5_4,mlx5_9\nNCCL_IB_GID_INDEX=3\nNCCL_IB_TC=106\nNCCL_SOCKET_IFNAME==eth0\n"
            "NCCL_DEBUG=INFO\n");
}

TEST(NcclConfTest, OneClassForAllOrNone) {
  NcclConfig config = TwoNics();
  config.nics[0].service_level = config.nics[1].service_level = 5;
  EXPECT_NE(NcclConf(config)->find("NCCL_IB_TC=106\nNCCL_IB_SL=5\n"), std::string::npos);
  config.nics[1].traffic_class = 41;
  config.nics[0].service_level.reset();
  EXPECT_EQ(*NcclConf(config), "NCCL_IB_HCA==mlx5_4,mlx5_9\nNCCL_IB_GID_INDEX=3\n");
}

TEST(NcclConfTest, ASearchForGids) {
  NcclConfig config = TwoNics();
  config.gids = GidSearch{*IpPrefix::Parse("10.100.0.0/15")};
  EXPECT_EQ(*NcclConf(config),
            "NCCL_IB_HCA==mlx5_4,mlx5_9\nNCCL_IB_GID_INDEX=-1\nNCCL_IB_ADDR_FAMILY=AF_INET\n"
            "NCCL_IB_ADDR_RANGE=10.100.0.0/15\nNCCL_IB_ROCE_VERSION_NUM=2\nNCCL_IB_TC=106\n");
  config.gids = GidSearch{*IpPrefix::Parse("fd00::/48")};
  EXPECT_NE(NcclConf(config)->find("=AF_INET6\nNCCL_IB_ADDR_RANGE=fd00::/48\n"), std::string::npos);
}

TEST(NcclConfTest, WhatThePlacesAskFor) {
  NcclConfig config = TwoNics();
  config.hardware = {
      {"NCCL_IB_MERGE_VFS", "0"}, {"NCCL_IB_MERGE_NICS", "0"}, {"NCCL_NET_MERGE_LEVEL", "LOC"}};
  EXPECT_EQ(*NcclConf(config),
            "NCCL_IB_HCA==mlx5_4,mlx5_9\nNCCL_IB_GID_INDEX=3\nNCCL_IB_TC=106\nNCCL_IB_MERGE_VFS=0\n"
            "NCCL_IB_MERGE_NICS=0\nNCCL_NET_MERGE_LEVEL=LOC\n");
}

TEST(NcclConfTest, TheFabricsLinesStandForOurs) {
  NcclConfig config = TwoNics();
  config.socket_ifname = "eth0";
  config.env = {{"NCCL_SOCKET_IFNAME", "=bond0"}, {"NCCL_IB_TC", "52"}};
  EXPECT_EQ(*NcclConf(config),
            "NCCL_IB_HCA==mlx5_4,mlx5_9\nNCCL_IB_GID_INDEX=3\nNCCL_SOCKET_IFNAME==bond0\nNCCL_IB_TC=52\n");
}

TEST(NcclConfTest, NamesOnlyWhatIsKnown) {
  EXPECT_EQ(*NcclConf({}), "");
  NcclConfig config;
  config.nics = {{"rxe0", Ip("10.0.0.1"), 1, {}, {}}};
  config.gids = 1;
  EXPECT_EQ(*NcclConf(config), "NCCL_IB_HCA==rxe0\nNCCL_IB_GID_INDEX=1\n");
}

TEST(NcclConfTest, ValuesThatNcclWouldCutAreRefused) {
  NcclConfig config;
  config.nics = {{std::string(1021, 'm'), Ip("10.0.0.1"), 3, {}, {}}};
  config.gids = 3;
  EXPECT_TRUE(NcclConf(config)) << "with '=' before it 1022 bytes";
  config.nics[0].rdma_device += "m";
  EXPECT_EQ(NcclConf(config).error().code, ErrorCode::kInvalid);
}

TEST(NcclConfTest, ValuesAreFoundAgain) {
  const std::string conf = *NcclConf(TwoNics());
  EXPECT_EQ(ValueIn(conf, "NCCL_IB_HCA"), "mlx5_4,mlx5_9");
  EXPECT_EQ(ValueIn(conf, "NCCL_IB_GID_INDEX"), "3");
  EXPECT_EQ(ValueIn(conf, "NCCL_IB_GID"), std::nullopt);
}

// The selected GIDs, and those that NCCL would find without a selection. Tables as the kernel fills them:
// default GIDs of each RoCE type first, then each address with each type, where there is a free slot.

GidSearch Range(const char* text) {
  return {*IpPrefix::Parse(text)};
}
GidEntry V1(int index, const std::string& address) {
  return {index, GidOf(Ip(address)), GidType::kRoceV1, "net1"};
}
GidEntry V2(int index, const std::string& address) {
  return {index, GidOf(Ip(address)), GidType::kRoceV2, "net1"};
}
Table BothTypes(const std::string& address) {
  return {V1(0, "fe80::1"), V2(1, "fe80::1"), V1(2, address), V2(3, address)};
}

TEST(NcclPicksTest, TheFirstAddressOfTheFamilyInTheRange) {
  EXPECT_EQ(NcclPicks(BothTypes("10.0.0.7"), Range("10.0.0.0/24")), 3);
  EXPECT_EQ(NcclPicks({V2(0, "fe80::1"), V2(1, "10.0.0.7")}, Range("10.0.0.0/24")), 1) << "no RoCE v1";
  EXPECT_EQ(NcclPicks({V2(0, "fe80::1"), V2(1, "10.0.0.7"), V2(2, "10.0.0.8")}, Range("10.0.0.0/24")), 1);
  EXPECT_EQ(NcclPicks({V2(0, "fe80::1"), V2(1, "10.1.0.7"), V2(2, "10.0.0.8")}, Range("10.0.0.0/24")), 2);
  EXPECT_EQ(NcclPicks({V2(0, "fe80::1"), V2(5, "10.0.0.8")}, Range("10.0.0.0/24")), 5) << "empty slots";
}

TEST(NcclPicksTest, ARoceV1EntryAloneIsTakenForItsFamily) {
  EXPECT_EQ(NcclPicks({V2(0, "fe80::1"), V1(1, "10.0.0.7")}, Range("10.0.0.0/24")), 1);
  EXPECT_EQ(NcclPicks({V2(0, "fe80::1"), V1(1, "10.0.0.7"), V2(4, "10.0.0.7")}, Range("10.0.0.0/24")), 4);
}

TEST(NcclPicksTest, Ipv6) {
  EXPECT_EQ(NcclPicks(BothTypes("fd00::7"), Range("fd00::/64")), 3);
  EXPECT_EQ(NcclPicks({V1(0, "fe80::1"), V2(1, "fe80::1"), V1(2, "10.0.0.7"), V2(3, "10.0.0.7"),
                       V1(4, "fd00::7"), V2(5, "fd00::7")},
                      Range("fd00::/64")),
            5);
}

// 2.21.5 to 2.25.1: getGidAddrFamily takes an empty GID for one of IPv6, and its RoCE version cannot be read.
TEST(NcclPicksTest, NothingWhereSomeReleasesFail) {
  EXPECT_EQ(NcclPicks({V2(1, "fd00::7")}, Range("fd00::/64")), std::nullopt);
  EXPECT_EQ(NcclPicks({V2(1, "fe80::1"), V2(3, "fd00::7")}, Range("fd00::/64")), std::nullopt);
  EXPECT_EQ(NcclPicks({V2(0, "fe80::1"), V2(3, "fd00::7")}, Range("fd00::/64")), 3);
  EXPECT_EQ(NcclPicks({V2(1, "10.0.0.7")}, Range("10.0.0.0/24")), 1) << "of another family: nobody asks";
}

TEST(NcclPicksTest, AnIpv4LinkLocalAddressIsAnAddressToNccl) {
  EXPECT_EQ(
      NcclPicks({V2(0, "fe80::1"), V1(1, "169.254.0.7"), V2(2, "169.254.0.7")}, Range("169.254.0.0/16")), 2);
  EXPECT_EQ(NcclPicks({V2(0, "fe80::1"), V2(1, "169.254.0.7"), V2(2, "10.0.0.7")}, Range("0.0.0.0/0")), 1);
}

TEST(NcclPicksTest, StaysAtTheBeginningWhereNothingFits) {
  EXPECT_EQ(NcclPicks(BothTypes("10.0.0.7"), Range("10.0.1.0/24")), 0);
  EXPECT_EQ(NcclPicks({}, Range("10.0.1.0/24")), 0);
}

class SelectGidsTest : public ::testing::Test {
 protected:
  void Add(const std::string& device, const std::string& address, int index, Table table) {
    nics_.push_back({device, Ip(address), index, {}, {}});
    tables_[device] = std::move(table);
  }
  Result<GidSelection> Select() {
    return SelectGids(nics_, [this](const NicConfig& nic) -> Result<Table> {
      ++tables_read_;
      return tables_.at(nic.rdma_device);
    });
  }

  std::vector<NicConfig> nics_;
  std::map<std::string, Table> tables_;
  int tables_read_ = 0;
};

TEST_F(SelectGidsTest, OneIndexWhereAllHaveTheSame) {
  Add("mlx5_4", "10.100.0.7", 3, {});
  Add("mlx5_9", "fd00::7", 3, {});
  EXPECT_EQ(*Select(), GidSelection(3));
  EXPECT_EQ(tables_read_, 0) << "nothing to find out";
}

TEST_F(SelectGidsTest, ASearchWhereItFindsTheRightOneOnEachNic) {
  Add("mlx5_4", "10.100.0.7", 3, BothTypes("10.100.0.7"));
  Add("irdma0", "10.101.0.7", 1, {V2(0, "fe80::2"), V2(1, "10.101.0.7")});
  EXPECT_EQ(*Select(), GidSelection(Range("10.100.0.0/15")));
}

TEST_F(SelectGidsTest, ASearchKeepsClearOfAddressesOutsideOfTheRange) {
  Add("mlx5_4", "10.100.0.7", 5,
      {V1(0, "fe80::1"), V2(1, "fe80::1"), V1(2, "192.168.0.1"), V2(3, "192.168.0.1"), V1(4, "10.100.0.7"),
       V2(5, "10.100.0.7")});
  Add("mlx5_9", "10.101.0.7", 3, BothTypes("10.101.0.7"));
  EXPECT_EQ(*Select(), GidSelection(Range("10.100.0.0/15")));
}

TEST_F(SelectGidsTest, NoneWhereAnotherAddressIsFirst) {
  Add("mlx5_4", "10.100.0.7", 5,
      {V1(0, "fe80::1"), V2(1, "fe80::1"), V1(2, "10.100.0.9"), V2(3, "10.100.0.9"), V1(4, "10.100.0.7"),
       V2(5, "10.100.0.7")});
  Add("mlx5_9", "10.101.0.7", 3, BothTypes("10.101.0.7"));
  const auto gids = Select();
  ASSERT_FALSE(gids);
  EXPECT_EQ(gids.error().code, ErrorCode::kConflict);
  EXPECT_NE(gids.error().message.find("mlx5_4 5, mlx5_9 3"), std::string::npos) << gids.error().message;
  for (const char* part :
       {"index 3: ::ffff:10.100.0.9", "mlx5_9, where 10.101.0.7 is meant", "10.100.0.0/15"})
    EXPECT_NE(gids.error().hint.find(part), std::string::npos) << gids.error().hint;
}

TEST_F(SelectGidsTest, NoneForTwoFamilies) {
  Add("mlx5_4", "10.100.0.7", 3, BothTypes("10.100.0.7"));
  Add("irdma0", "fd00::7", 1, {V2(0, "fe80::2"), V2(1, "fd00::7")});
  EXPECT_EQ(Select().error().code, ErrorCode::kConflict);
}

TEST_F(SelectGidsTest, Ipv6Only) {
  Add("mlx5_4", "fd00:1::7", 3, BothTypes("fd00:1::7"));
  Add("irdma0", "fd00:2::7", 1, {V2(0, "fe80::2"), V2(1, "fd00:2::7")});
  EXPECT_EQ(*Select(), GidSelection(Range("fd00::/30")));
}

}  // namespace
}  // namespace railhead::nccl

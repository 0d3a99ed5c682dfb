// GID tables below a made-up root.
#include "netns/gid/gid_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/linux_kernel.h"

namespace railhead {
namespace {

class GidTableTest : public ::testing::Test {
 protected:
  GidTableTest() {
    std::string path = ::testing::TempDir() + "/railhead-gid-XXXXXX";
    directory_ = mkdtemp(path.data());
    root_ = Root(directory_);
  }
  ~GidTableTest() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::string& value) {
    const std::string path = root_.Path("/sys/class/infiniband/mlx5_4/ports/1/" + name);
    ASSERT_TRUE(MakeDirectories(std::filesystem::path(path).parent_path()));
    ASSERT_TRUE(WriteAtomic(path, value + "\n", Sync::kVolatile));
  }
  void Slot(int index, const std::string& gid, const std::string& type, const std::string& netdev) {
    const std::string number = std::to_string(index);
    Write("gids/" + number, gid);
    if (!type.empty()) Write("gid_attrs/types/" + number, type);
    if (!netdev.empty()) Write("gid_attrs/ndevs/" + number, netdev);
  }
  std::vector<GidEntry> Read() { return *ReadGidTable(root_, "mlx5_4", 1).value(); }

  std::string directory_;
  Root root_;
};

constexpr char kEmpty[] = "0000:0000:0000:0000:0000:0000:0000:0000";
constexpr char kV4[] = "0000:0000:0000:0000:0000:ffff:0a64:0007";

TEST_F(GidTableTest, ReadsEntriesInOrderAndLeavesOutUnused) {
  Slot(0, "fe80:0000:0000:0000:0011:22ff:fe33:4455", "IB/RoCE v1", "net1");
  Slot(1, "fe80:0000:0000:0000:0011:22ff:fe33:4455", "RoCE v2", "net1");
  Slot(2, kEmpty, "", "");
  Slot(10, kV4, "RoCE v2", "net1");
  Slot(3, kV4, "IB/RoCE v1", "net1");
  const auto table = Read();
  ASSERT_EQ(table.size(), 4U);
  EXPECT_EQ(table[2].index, 3);
  EXPECT_EQ(table[3], (GidEntry{10, *IpAddress::Parse("::ffff:10.100.0.7"), GidType::kRoceV2, "net1"}));

  const auto address = *IpAddress::Parse("10.100.0.7");
  EXPECT_EQ(FindGid(table, address, GidType::kRoceV2, "net1")->index, 10);
  EXPECT_EQ(FindGid(table, address, GidType::kRoceV1, "net1")->index, 3);
  EXPECT_EQ(FindGid(table, address, GidType::kRoceV2, "net2"), std::nullopt);
  EXPECT_EQ(FindGid(table, *IpAddress::Parse("10.100.0.8"), GidType::kRoceV2, "net1"), std::nullopt);
}

TEST_F(GidTableTest, LowestIndexOfSeveral) {
  Slot(7, kV4, "RoCE v2", "net1");
  Slot(4, kV4, "RoCE v2", "net1");
  EXPECT_EQ(FindGid(Read(), *IpAddress::Parse("10.100.0.7"), GidType::kRoceV2, "net1")->index, 4);
}

TEST_F(GidTableTest, OddContentIsLeftOut) {
  Slot(0, "not a gid", "RoCE v2", "net1");
  Slot(1, "10.0.0.1", "RoCE v2", "net1");
  Slot(2, kV4, "RoCE v9", "net1");
  Slot(3, kV4, "", "net1");
  Slot(4, "", "RoCE v2", "net1");
  Slot(5, kV4, "RoCE v2", "");  // its netdev is in another namespace
  Write("gids/README", kV4);
  const auto table = Read();
  ASSERT_EQ(table.size(), 1U);
  EXPECT_EQ(table[0].index, 5);
  EXPECT_EQ(table[0].netdev, "");
}

TEST_F(GidTableTest, AbsentDevices) {
  Slot(0, kV4, "RoCE v2", "net1");
  EXPECT_EQ(ReadGidTable(root_, "mlx5_5", 1).value(), std::nullopt);
  EXPECT_EQ(ReadGidTable(root_, "mlx5_4", 2).value(), std::nullopt);
  EXPECT_EQ(ReadGidTable(root_, "", 1).value(), std::nullopt);
  EXPECT_EQ(ReadGidTable(root_, "../infiniband/mlx5_4", 1).value(), std::nullopt);
  EXPECT_NE(ReadGidTable(root_, "mlx5_4", 1).value(), std::nullopt);
}

TEST_F(GidTableTest, FirstSlotsOnly) {
  Slot(3, kV4, "IB/RoCE v1", "net1");
  Slot(4, kV4, "RoCE v2", "net1");
  EXPECT_EQ(ReadGidTable(root_, "mlx5_4", 1, 4).value().value().size(), 1U);
  EXPECT_EQ(ReadGidTable(root_, "mlx5_4", 1, 5).value().value().size(), 2U);
  EXPECT_EQ(ReadGidTable(root_, "mlx5_4", 1, 100).value().value().size(), 2U);
  EXPECT_EQ(ReadGidTable(root_, "mlx5_5", 1, 4).value(), std::nullopt);
}

TEST_F(GidTableTest, WaitsForAnEntry) {
  LinuxKernel kernel(root_);
  const NetNs host = kernel.HostNetns().value();
  const GidRequest request{*IpAddress::Parse("10.100.0.7"), GidType::kRoceV2, "net1"};
  const auto wait = [&](std::chrono::milliseconds limit) {
    return kernel.WaitGid(host, "mlx5_4", request, std::chrono::steady_clock::now() + limit).value();
  };
  EXPECT_EQ(wait(std::chrono::milliseconds(0)), std::nullopt);  // no such device
  Slot(3, kV4, "IB/RoCE v1", "net1");
  EXPECT_EQ(wait(std::chrono::milliseconds(5)), std::nullopt);
  std::thread later([&] { Slot(700, kV4, "RoCE v2", "net1"); });
  EXPECT_EQ(wait(std::chrono::minutes(1)).value().index, 700);
  later.join();
  EXPECT_EQ(wait(std::chrono::milliseconds(0)).value().index, 700);
}

TEST_F(GidTableTest, DescribesForPeople) {
  Slot(0, "fe80:0000:0000:0000:0011:22ff:fe33:4455", "IB/RoCE v1", "net1");
  Slot(1, kV4, "RoCE v2", "net1");
  EXPECT_EQ(Describe(Read()),
            "index 0: fe80::11:22ff:fe33:4455 RoCE v1 net1\nindex 1: ::ffff:10.100.0.7 RoCE v2 net1");
}

TEST_F(GidTableTest, SurvivesTheWayThroughAPipe) {
  Slot(0, "fe80:0000:0000:0000:0011:22ff:fe33:4455", "IB/RoCE v1", "net1");
  Slot(1, kV4, "RoCE v2", "");
  const std::optional<std::vector<GidEntry>> table = Read();
  EXPECT_EQ(DecodeGidTable(EncodeGidTable(table)).value(), table);
  EXPECT_EQ(DecodeGidTable(EncodeGidTable(std::nullopt)).value(), std::nullopt);
  const std::optional<std::vector<GidEntry>> nothing = std::vector<GidEntry>{};
  EXPECT_EQ(DecodeGidTable(EncodeGidTable(nothing)).value(), nothing);
  for (const char* text :
       {"", "presen", "present\n", "present\n1 ::1 1", "present\nx ::1 1 net1", "present\n1 10.0.0.1 1 net1",
        "present\n1 ::1 9 net1", "present\n1 ::1 1 net1 y"}) {
    EXPECT_EQ(DecodeGidTable(text).error().code, ErrorCode::kInternal) << text;
  }
}

TEST(GidOf, MapsIpv4) {
  EXPECT_EQ(GidOf(*IpAddress::Parse("10.100.0.7")), *IpAddress::Parse("::ffff:10.100.0.7"));
  EXPECT_EQ(GidOf(*IpAddress::Parse("fd00::7")), *IpAddress::Parse("fd00::7"));
}

}  // namespace
}  // namespace railhead

// Allocation records, CDI specs, NCCL configuration files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/xattr.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "cni/nccl/nccl_config_files.h"
#include "cni/state/allocation.h"
#include "cni/state/cdi_spec.h"
#include "netns/base/unique_fd.h"
#include "netns/sys/selinux.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

constexpr const char* kDevice = "0000:43:10.0";

TEST(AllocationTest, SurvivesTheFile) {
  const TempRoot temp;
  EXPECT_FALSE(ReadAllocation(temp.root(), kDevice)->has_value());
  for (const auto nccl_config : {NcclConfigPolicy::kOff, NcclConfigPolicy::kRequired}) {
    for (const auto device_nodes : {DeviceNodeMode::kCdi, DeviceNodeMode::kMount}) {
      const AllocationRecord record{"railhead.io/roce", kDevice,     {kDevice, "0000:83:10.0"}, 17,
                                    nccl_config,        device_nodes};
      ASSERT_TRUE(WriteAllocation(temp.root(), record));
      EXPECT_EQ(ReadAllocation(temp.root(), kDevice)->value(), record);
    }
  }
}

TEST(AllocationTest, AllOfARequestAtOnce) {
  const TempRoot temp;
  const std::vector<std::string> ids = {"0000:83:10.0", kDevice};
  std::vector<AllocationRecord> records;
  for (const std::string& id : ids) {
    records.push_back({"railhead.io/roce", id, ids, 3, NcclConfigPolicy::kRequired, DeviceNodeMode::kCdi});
  }
  ASSERT_TRUE(WriteAllocations(temp.root(), records));
  for (const AllocationRecord& record : records)
    EXPECT_EQ(ReadAllocation(temp.root(), record.device_id)->value(), record);
  records[1].device_id = "../x";
  records[0].generation = 4;
  EXPECT_EQ(WriteAllocations(temp.root(), records).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(ReadAllocation(temp.root(), ids[0])->value().generation, 3U) << "none is written then";
}

TEST(AllocationTest, DocumentedFormat) {
  const TempRoot temp;
  temp.Write("/var/lib/railhead/allocations/0000:43:10.0.json",
             R"({ "version": 1, "resource": "railhead.io/roce", "deviceId": "0000:43:10.0",
                  "siblings": ["0000:43:10.0", "0000:83:10.0"], "generation": 17,
                  "ncclConfig": "required", "deviceNodes": "cdi" })");
  const auto record = ReadAllocation(temp.root(), kDevice);
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->generation, 17U);
  EXPECT_EQ((*record)->nccl_config, NcclConfigPolicy::kRequired);
}

TEST(AllocationTest, DeviceIdsCannotLeaveTheDirectory) {
  const TempRoot temp;
  for (const auto& id : std::vector<std::string>{"", "../x", "a/b", ".hidden", "a b", std::string(64, 'a')}) {
    EXPECT_EQ(ReadAllocation(temp.root(), id).error().code, ErrorCode::kInvalid) << id;
    AllocationRecord record;
    record.device_id = id;
    EXPECT_EQ(WriteAllocation(temp.root(), record).error().code, ErrorCode::kInvalid) << id;
  }
}

TEST(AllocationTest, DamagedRecordNamesItsFile) {
  const TempRoot temp;
  temp.Write("/var/lib/railhead/allocations/0000:43:10.0.json", "{");
  const auto record = ReadAllocation(temp.root(), kDevice);
  ASSERT_FALSE(record);
  EXPECT_NE(record.error().message.find("allocations/0000:43:10.0.json"), std::string::npos);
}

TEST(CdiSpecTest, Golden) {
  const TempRoot temp;
  ASSERT_TRUE(WriteCdiSpec(temp.root(), {kDevice,
                                         {"/dev/infiniband/uverbs4", "/dev/infiniband/rdma_cm"},
                                         {},
                                         {{"/run/railhead/nccl/c1/nccl.conf", "/etc/nccl.conf"}}}));
  EXPECT_EQ(nlohmann::json::parse(temp.Read("/run/cdi/railhead-0000:43:10.0.json")),
            nlohmann::json::parse(R"({
    "cdiVersion": "0.5.0", "kind": "railhead.io/nic",
    "devices": [{ "name": "0000:43:10.0", "containerEdits": {
      "deviceNodes": [{"path": "/dev/infiniband/uverbs4", "permissions": "rw"},
                      {"path": "/dev/infiniband/rdma_cm", "permissions": "rw"}],
      "mounts": [{"hostPath": "/run/railhead/nccl/c1/nccl.conf", "containerPath": "/etc/nccl.conf",
                  "options": ["ro", "nosuid", "nodev", "noexec", "bind"]}] } }] })"));
  EXPECT_EQ(CdiDeviceName(kDevice), "railhead.io/nic=0000:43:10.0");
}

TEST(CdiSpecTest, DeviceWithoutAnythingStillHasAnEdit) {
  const TempRoot temp;
  ASSERT_TRUE(WriteCdiSpec(temp.root(), {kDevice, {}, {}}));
  const auto json = nlohmann::json::parse(temp.Read("/run/cdi/railhead-0000:43:10.0.json"));
  EXPECT_EQ(json["devices"][0]["containerEdits"]["env"][0], "RAILHEAD_NIC=0000:43:10.0");
}

TEST(CdiSpecTest, RemovedOnce) {
  const TempRoot temp;
  ASSERT_TRUE(WriteCdiSpec(temp.root(), {kDevice, {}, {}}));
  EXPECT_EQ(*RemoveCdiSpec(temp.root(), kDevice), true);
  EXPECT_EQ(*RemoveCdiSpec(temp.root(), kDevice), false);
  EXPECT_TRUE(FilesBelow(temp.directory() + "/run/cdi").empty());
}

TEST(NcclConfigTest, WrittenAndRemoved) {
  const TempRoot temp;
  ASSERT_TRUE(nccl::WriteNcclConfig(temp.root(), "c1", {{nccl::kNcclConfName, {}, "A=1\n"}}));
  EXPECT_EQ(temp.Read("/run/railhead/nccl/c1/nccl.conf"), "A=1\n");
  const auto mode = std::filesystem::status(nccl::NcclConfigPath(temp.root(), "c1")).permissions();
  EXPECT_NE(mode & std::filesystem::perms::others_read, std::filesystem::perms::none)
      << "containers do not run as root";
  ASSERT_TRUE(nccl::RemoveNcclConfig(temp.root(), "c1"));
  EXPECT_FALSE(temp.Exists("/run/railhead/nccl/c1"));
  EXPECT_TRUE(nccl::RemoveNcclConfig(temp.root(), "c1"));
}

TEST(NcclConfigTest, DeviceFileKeepsItsInode) {
  const TempRoot temp;
  ASSERT_TRUE(nccl::WriteDeviceNcclConfig(temp.root(), kDevice, "A=1 and a long line\n"));
  const std::string path = nccl::DeviceNcclConfigPath(temp.root(), kDevice);
  // As a bind mount sees it. (A second name would be refused: somebody has planted it.)
  const UniqueFd mounted(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const std::string alias = "/proc/self/fd/" + std::to_string(mounted.get());
  ASSERT_TRUE(nccl::WriteDeviceNcclConfig(temp.root(), kDevice, "B=2\n"));
  EXPECT_EQ(ReadFileAt(alias), "B=2\n");
  ASSERT_TRUE(nccl::ClearDeviceNcclConfig(temp.root(), kDevice));
  EXPECT_EQ(ReadFileAt(alias), "");
}

// Everything that containers mount, whatever wrote it before.
TEST(NcclConfigTest, ContainersMayReadAllFilesBySelinux) {
  const TempRoot temp;
  temp.Write("/probe", "");
  if (::setxattr((temp.directory() + "/probe").c_str(), "security.selinux", "x", 1, 0) != 0)
    GTEST_SKIP() << "needs root, and a file system with labels";
  const std::vector<nccl::NcclConfigFile> files = {{nccl::kNcclConfName, {}, "A=1\n"},
                                                   {nccl::kUcxConfName, {}, "B=1\n"},
                                                   {nccl::kTopologyName, {}, "<x/>"}};
  const auto labels = [&] {
    std::set<std::string> found;
    for (const std::string& file : FilesBelow(temp.directory() + "/run/railhead")) {
      std::string text(512, '\0');
      const std::string path = temp.directory() + "/run/railhead/" + file;
      const ssize_t size = ::getxattr(path.c_str(), "security.selinux", text.data(), text.size());
      found.insert(size <= 0 ? "" : text.c_str());
    }
    return found;
  };
  const auto write = [&] {
    ASSERT_TRUE(nccl::WriteNcclConfig(temp.root(), "c1", files));
    ASSERT_TRUE(nccl::WriteDeviceNcclConfig(temp.root(), kDevice, "A=1\n"));
  };
  write();
  EXPECT_EQ(labels(), std::set<std::string>{""}) << "a host without SELinux";
  temp.Write("/sys/fs/selinux/enforce", "1");
  for (int round = 0; round < 2; ++round) {
    write();
    EXPECT_EQ(labels(), std::set<std::string>{kContainerFileLabel});
  }
}

TEST(NcclConfigTest, DirectoryMadeByARuntimeIsReplaced) {
  const TempRoot temp;
  std::filesystem::create_directories(nccl::DeviceNcclConfigPath(temp.root(), kDevice));
  ASSERT_TRUE(nccl::WriteDeviceNcclConfig(temp.root(), kDevice, "A=1\n"));
  EXPECT_EQ(ReadFileAt(nccl::DeviceNcclConfigPath(temp.root(), kDevice)), "A=1\n");
}

TEST(NcclConfigTest, DirectoryWithContentIsNotTouched) {
  const TempRoot temp;
  const std::string inside = nccl::DeviceNcclConfigPath(temp.root(), kDevice) + "/file";
  WriteFileAt(inside, "x");
  EXPECT_FALSE(nccl::WriteDeviceNcclConfig(temp.root(), kDevice, "A=1\n"));
  EXPECT_EQ(ReadFileAt(inside), "x");
}

TEST(NcclConfigTest, ClearingWhatIsNotThere) {
  const TempRoot temp;
  EXPECT_TRUE(nccl::ClearDeviceNcclConfig(temp.root(), kDevice));
  EXPECT_TRUE(FilesBelow(temp.directory() + "/run").empty());
  // A directory that a runtime made for a device that never got an ADD.
  std::filesystem::create_directories(nccl::DeviceNcclConfigPath(temp.root(), kDevice));
  EXPECT_TRUE(nccl::ClearDeviceNcclConfig(temp.root(), kDevice)) << "DEL must not fail over it";
}

}  // namespace
}  // namespace railhead::testing

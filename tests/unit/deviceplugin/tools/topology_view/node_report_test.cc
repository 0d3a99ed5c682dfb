// The report of a node: use of VFs, text, JSON, picture.
#include "deviceplugin/tools/topology_view/node_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "cni/state/journal.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "netns/base/node.h"
#include "netns/json/record_io.h"
#include "tests/support/process.h"
#include "tests/support/sysfs/machines.h"

namespace railhead::testing {
namespace {

constexpr const char* kFabric = R"({"version": 1, "rails": [
  {"name": "rail<0>", "pf": "rail0", "vlan": 100},
  {"name": "rail1", "pf": "0000:40:00.0", "vlan": 101},
  {"name": "rail2", "pf": 4}]})";

class ReportTest : public ::testing::Test {
 protected:
  ReportTest() : machine_(MakeDgxH100(sysfs_)) {
    sysfs_.Write("/etc/railhead/fabric.json", kFabric);
    sysfs_.Write("/etc/railhead/node-name", "node-a&\"b\"\n");
    vfs_ = sysfs_.AddVfs(machine_.nics[0], 20);
  }

  // The device is in a pod.
  void Attach(const std::string& device, const std::string& pf) {
    JournalEntry entry;
    entry.key = {"rails", "sandbox-" + std::to_string(++attachments_), "net1"};
    entry.boot_id = *BootId(sysfs_.root());
    entry.phase = Phase::kDone;
    entry.netns = "/run/netns/x";
    AttachedDevice link;
    link.device = device;
    link.pf = pf;
    link.vf = pf.empty() ? -1 : 0;
    link.pod_name = "net1";
    entry.devices = {link};
    const auto written = Journal(sysfs_.root()).Write(entry);
    ASSERT_TRUE(written) << Describe(written.error());
  }

  [[nodiscard]] topology_view::NodeReport Read() const {
    auto report = topology_view::ReadNodeReport(sysfs_.root());
    if (!report) throw std::runtime_error(Describe(report.error()));  // ends this test alone
    return *std::move(report);
  }

  FakeSysfs sysfs_;
  FakeMachine machine_;
  std::vector<std::string> vfs_;
  int attachments_ = 0;
};

TEST_F(ReportTest, RailsAndUseOfVfs) {
  Attach(vfs_[3], machine_.nics[0]);
  Attach(vfs_[7], machine_.nics[0]);
  Attach(machine_.nics[3], "");
  const topology_view::NodeReport report = Read();
  ASSERT_EQ(report.nics.size(), machine_.nics.size());
  EXPECT_EQ(report.nics[0].rail, "rail<0>");
  EXPECT_EQ(report.nics[0].vlan, 100);
  EXPECT_EQ(report.nics[0].VfsInUse().size(), 2U);
  ASSERT_EQ(report.nics[0].vfs.size(), 20U);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(report.nics[0].vfs[i].index, i);
    EXPECT_EQ(report.nics[0].vfs[i].id, vfs_[i]);
    EXPECT_EQ(report.nics[0].vfs[i].in_use, i == 3 || i == 7) << i;
  }
  EXPECT_FALSE(report.nics[0].in_use);
  EXPECT_EQ(report.nics[3].rail, "rail1");
  EXPECT_TRUE(report.nics[3].in_use);
  // A position counts in PCI order.
  EXPECT_EQ(report.nics[4].rail, "rail2");
  EXPECT_EQ(report.nics[4].vlan, std::nullopt);
  EXPECT_EQ(report.nics[5].rail, "");
  EXPECT_EQ(report.notes, std::vector<std::string>{});
  EXPECT_EQ(report.uuids[2], "GPU-00000000-0000-0000-0000-000000000002");
}

TEST_F(ReportTest, ADamagedAttachmentIsNoted) {
  Attach(vfs_[3], machine_.nics[0]);
  sysfs_.Write("/run/railhead/attachments/sandbox-1/rails@net1.json", "{");
  const topology_view::NodeReport report = Read();
  EXPECT_EQ(report.nics[0].VfsInUse().size(), 1U) << "nobody knows whether it is";
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_NE(report.notes[0].find("rails@net1.json"), std::string::npos) << report.notes[0];
}

TEST_F(ReportTest, Json) {
  Attach(vfs_[3], machine_.nics[0]);
  sysfs_.Write(topology::kTopologyPath, R"({"paths": [
    {"nic": "0000:18:00.0", "accelerator": "0000:1b:00.0", "path": "PIX"},
    {"nic": "0000:77:00.0", "accelerator": "0000:1b:00.0", "path": "PIX"}]})");
  const auto json = nlohmann::json::parse(record::Dump(ToJson(ViewOf(Read()))));
  EXPECT_EQ(json["node"], "node-a&\"b\"");
  ASSERT_EQ(json["accelerators"].size(), 8U);
  EXPECT_EQ(json["accelerators"][1],
            nlohmann::json::parse(R"({"name": "GPU1", "address": "0000:43:00.0", "vendor": "10de",
              "device": "2330", "driver": "nvidia", "numaNode": 0,
              "bridges": ["pci0000:3d", "0000:3d:01.0", "0000:3e:00.0", "0000:3f:01.0", "0000:41:00.0", "0000:42:00.0"],
              "uuid": "GPU-00000000-0000-0000-0000-000000000001"})"));
  ASSERT_EQ(json["nics"].size(), 12U);
  EXPECT_EQ(json["nics"][0],
            nlohmann::json({{"name", "NIC0"},
                            {"address", "0000:18:00.0"},
                            {"netdev", "rail0"},
                            {"rdmaDevice", "mlx5_0"},
                            {"numaNode", 0},
                            {"bridges", {"pci0000:15", "0000:15:01.0", "0000:16:00.0", "0000:17:00.0"}},
                            {"rail", "rail<0>"},
                            {"vlan", 100},
                            {"inUse", false},
                            {"vfs", 20},
                            {"vfsFree", 19},
                            {"vfsInUse", nlohmann::json::array({vfs_[3]})}}));
  EXPECT_EQ(json["paths"].size(), 96U);
  EXPECT_EQ(json["acceleratorPaths"].size(), 28U);
  EXPECT_EQ(json["nicPaths"].size(), 66U);
  EXPECT_EQ(json["paths"][0], nlohmann::json::parse(R"({"nic": "0000:18:00.0",
    "accelerator": "0000:1b:00.0", "path": "PIX"})"));
  EXPECT_EQ(json["paths"][1]["path"], "NODE");
  EXPECT_EQ(json["nicPaths"][11], nlohmann::json::parse(R"({"between": ["0000:29:00.0", "0000:29:00.1"],
    "path": "PIX"})"));
  ASSERT_EQ(json["notes"].size(), 1U);
  EXPECT_NE(json["notes"][0].get<std::string>().find("/paths/1/nic"), std::string::npos);
  // Its output is valid input.
  const nlohmann::json again = {{"paths", json["paths"]}};
  const auto config = topology::ParseTopologyConfig(again.dump(), "printed");
  ASSERT_TRUE(config) << Describe(config.error());
  EXPECT_EQ(config->paths.size(), 96U);
}

TEST_F(ReportTest, ANameThatIsNoUtf8DoesNotStopIt) {
  topology_view::NodeReport report = Read();
  report.nics[0].rail = "a\xff\x01";
  const auto json = nlohmann::json::parse(record::Dump(ToJson(ViewOf(report))));
  EXPECT_EQ(json["nics"][0]["rail"], "a\xef\xbf\xbd\x01");
}

}  // namespace
}  // namespace railhead::testing

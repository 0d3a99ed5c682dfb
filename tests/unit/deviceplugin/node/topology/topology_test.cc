// The matrix of every machine, as nvidia-smi shows it on such machines.
#include "deviceplugin/node/topology/topology.h"

#include <gtest/gtest.h>

#include "deviceplugin/node/topology/topology_config.h"
#include "netns/base/text.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/support/sysfs/machines.h"

namespace railhead::testing {
namespace {

PciAddress At(const std::string& text) {
  return *PciAddress::Parse(text);
}

std::shared_ptr<const topology::Topology> Read(const FakeSysfs& sysfs,
                                               const topology::TopologyConfig& config = {}) {
  const auto inventory = inventory::Discover(sysfs.root(), {});
  if (!inventory) {
    ADD_FAILURE() << Describe(inventory.error());
    return nullptr;
  }
  const auto topology = topology::Topology::Read(sysfs.root(), **inventory, config);
  if (!topology) {
    ADD_FAILURE() << Describe(topology.error());
    return nullptr;
  }
  return *topology;
}

// A line per NIC: its path to each accelerator.
std::vector<std::string> Lines(const topology::Topology& topology) {
  std::vector<std::string> lines;
  for (std::size_t nic = 0; nic < topology.nics().size(); ++nic) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < topology.accelerators().size(); ++i) {
      words.emplace_back(NameOf(topology.NicToAccelerator(nic, i)));
    }
    lines.push_back(Join(words, " "));
  }
  return lines;
}

struct Expected {
  MachineKind machine;
  std::vector<std::string> lines;
};

class MatrixTest : public ::testing::TestWithParam<Expected> {};

TEST_P(MatrixTest, IsThatOfTheMachine) {
  FakeSysfs sysfs;
  const FakeMachine machine = GetParam().machine.make(sysfs);
  const auto topology = Read(sysfs);
  ASSERT_NE(topology, nullptr);
  EXPECT_EQ(Lines(*topology), GetParam().lines);
  ASSERT_EQ(topology->nics().size(), machine.nics.size());
  ASSERT_EQ(topology->accelerators().size(), machine.accelerators.size());
  for (std::size_t i = 0; i < machine.nics.size(); ++i) {
    EXPECT_EQ(topology->nics()[i].address.ToString(), machine.nics[i]);
    EXPECT_EQ(topology->nics()[i].netdev, "rail" + std::to_string(i));
  }
  EXPECT_TRUE(topology->notes().empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, MatrixTest,
    ::testing::Values(Expected{{"DgxH100", MakeDgxH100},
                               {"PXB NODE NODE NODE SYS SYS SYS SYS", "NODE NODE NODE NODE SYS SYS SYS SYS",
                                "NODE NODE NODE NODE SYS SYS SYS SYS", "NODE PXB NODE NODE SYS SYS SYS SYS",
                                "NODE NODE PXB NODE SYS SYS SYS SYS", "NODE NODE NODE PXB SYS SYS SYS SYS",
                                "SYS SYS SYS SYS PXB NODE NODE NODE", "SYS SYS SYS SYS NODE NODE NODE NODE",
                                "SYS SYS SYS SYS NODE NODE NODE NODE", "SYS SYS SYS SYS NODE PXB NODE NODE",
                                "SYS SYS SYS SYS NODE NODE PXB NODE", "SYS SYS SYS SYS NODE NODE NODE PXB"}},
                      Expected{{"PcieA100", MakePcieA100},
                               {"PIX PIX PHB PHB SYS SYS SYS SYS", "PHB PHB PIX PIX SYS SYS SYS SYS",
                                "SYS SYS SYS SYS PIX PIX PHB PHB", "SYS SYS SYS SYS PHB PHB PIX PIX"}},
                      Expected{{"DualPort", MakeDualPort}, {"NODE SYS", "NODE SYS", "SYS PHB", "SYS PHB"}},
                      Expected{{"E810", MakeE810}, {"NODE", "NODE"}},
                      Expected{{"BlueField3", MakeBlueField3}, {"PXB", "PXB"}},
                      Expected{{"Arm", MakeArm}, {"NODE", "NODE"}},
                      Expected{{"VirtualMachine", MakeVirtualMachine}, {"PHB PHB", "PHB PHB"}}),
    [](const auto& expected) { return expected.param.machine.name; });

TEST(TopologyTest, NicsAndAcceleratorsAmongThemselves) {
  FakeSysfs sysfs;
  MakeDgxH100(sysfs);
  const auto topology = Read(sysfs);
  ASSERT_NE(topology, nullptr);
  // NICs 1 and 2 are the ports of one device.
  EXPECT_EQ(topology->NicToNic(1, 2), PciPath::kPix);
  EXPECT_EQ(topology->NicToNic(0, 1), PciPath::kNode);
  EXPECT_EQ(topology->NicToNic(1, 6), PciPath::kSys);
  EXPECT_EQ(topology->AcceleratorToAccelerator(0, 3), PciPath::kNode);
  EXPECT_EQ(topology->AcceleratorToAccelerator(3, 4), PciPath::kSys);
  FakeSysfs a100;
  MakePcieA100(a100);
  const auto pairs = Read(a100);
  ASSERT_NE(pairs, nullptr);
  EXPECT_EQ(pairs->AcceleratorToAccelerator(0, 1), PciPath::kPix);
  EXPECT_EQ(pairs->AcceleratorToAccelerator(1, 2), PciPath::kPhb);
}

TEST(TopologyTest, VfsAreWhereTheirPfIs) {
  FakeSysfs sysfs;
  const FakeMachine machine = MakeDgxH100(sysfs);
  const auto vfs = sysfs.AddVfs(machine.nics[3], 16);
  const auto topology = Read(sysfs);
  ASSERT_NE(topology, nullptr);
  EXPECT_EQ(topology->nics().size(), machine.nics.size());
  for (const std::string& vf : vfs) {
    EXPECT_EQ(topology->NicIndex(At(vf)), 3U);
    EXPECT_EQ(topology->Between(At(vf), At("0000:43:00.0")), PciPath::kPxb);
    EXPECT_EQ(topology->Between(At(vf), At("0000:1b:00.0")), PciPath::kNode);
    const auto device = FindPciDevice(sysfs.root(), At(vf));
    ASSERT_TRUE(device && *device);
    EXPECT_EQ(PciPathBetween(PlaceOf(**device), {topology->accelerators()[1].path, 0}), PciPath::kPxb);
  }
  EXPECT_EQ(topology->NicIndex(At("0000:41:00.0")), std::nullopt);
  EXPECT_EQ(topology->Between(At("0000:41:00.0"), At("0000:43:00.0")), std::nullopt);
  EXPECT_EQ(topology->Between(At("0000:40:00.0"), At("0000:44:00.0")), std::nullopt);
}

TEST(TopologyTest, TheOverrideWins) {
  FakeSysfs sysfs;
  const FakeMachine machine = MakeVirtualMachine(sysfs);
  topology::TopologyConfig config;
  config.paths = {{At("0000:00:07.0"), At("0000:00:05.0"), PciPath::kPix},
                  {At("0000:00:08.0"), At("0000:00:05.0"), PciPath::kSys}};
  const auto topology = Read(sysfs, config);
  ASSERT_NE(topology, nullptr);
  EXPECT_EQ(Lines(*topology), (std::vector<std::string>{"PIX PHB", "SYS PHB"}));
  EXPECT_TRUE(topology->IsOverridden(0, 0));
  EXPECT_FALSE(topology->IsOverridden(0, 1));
  EXPECT_TRUE(topology->IsOverridden(1, 0));
  EXPECT_TRUE(topology->notes().empty());
}

TEST(TopologyTest, WhatANodeDoesNotHaveIsNoted) {
  FakeSysfs sysfs;
  const FakeMachine machine = MakeBlueField3(sysfs);
  const auto vfs = sysfs.AddVfs(machine.nics[0], 1);
  topology::TopologyConfig config;
  config.paths = {{At("0000:43:00.0"), At("0000:1b:00.0"), PciPath::kPix},
                  {At("0000:1a:00.0"), At("0000:1c:00.0"), PciPath::kPix},
                  {At(vfs[0]), At("0000:1b:00.0"), PciPath::kPix}};
  config.accelerators.ids = {{"a", At("0000:1b:00.0")}, {"b", At("0000:43:00.0")}};
  const auto topology = Read(sysfs, config);
  ASSERT_NE(topology, nullptr);
  EXPECT_EQ(Lines(*topology), (std::vector<std::string>{"PXB", "PXB"}));
  EXPECT_EQ(
      topology->notes(),
      (std::vector<std::string>{"/paths/0/nic: this node has no network function 0000:43:00.0",
                                "/paths/1/accelerator: this node has no accelerator 0000:1c:00.0",
                                "/paths/2/nic: 0000:1a:02.0 is a VF; the path of its PF 0000:1a:00.0 counts",
                                "/accelerators/ids/b: this node has no accelerator 0000:43:00.0"}));
}

TEST(TopologyTest, IdsComeFromTheConfiguration) {
  FakeSysfs sysfs;
  MakeVirtualMachine(sysfs);
  topology::TopologyConfig config;
  config.accelerators.ids = {{"partition-1", At("0000:00:06.0")}};
  const auto topology = Read(sysfs, config);
  ASSERT_NE(topology, nullptr);
  const topology::AcceleratorIds ids = IdsOf(sysfs.root(), *topology, config);
  EXPECT_EQ(ids.Find("partition-1", "nvidia.com/gpu"), At("0000:00:06.0"));
  EXPECT_EQ(ids.Find("GPU-00000000-0000-0000-0000-000000000000", "nvidia.com/gpu"), At("0000:00:05.0"));
}

TEST(TopologyConfigTest, Whole) {
  const auto config = topology::ParseTopologyConfig(R"({
    "paths": [{"nic": "0000:43:00.0", "accelerator": "0000:1B:00.0", "path": "pix"}],
    "accelerators": {"vendors": ["10de", "8086:0380"], "ids": {"a/b": "00000000:1b:00.0"}}})",
                                                    "topology.json");
  ASSERT_TRUE(config) << Describe(config.error());
  ASSERT_EQ(config->paths.size(), 1U);
  EXPECT_EQ(config->paths[0].nic, PciAddress::Parse("0000:43:00.0"));
  EXPECT_EQ(config->paths[0].accelerator, PciAddress::Parse("0000:1b:00.0"));
  EXPECT_EQ(config->paths[0].path, PciPath::kPix);
  EXPECT_EQ(config->accelerators.kinds,
            (std::vector<AcceleratorKind>{{0x10de, std::nullopt}, {0x8086, 0x0380}}));
  EXPECT_EQ(config->accelerators.ids.at("a/b"), PciAddress::Parse("0000:1b:00.0"));
}

TEST(TopologyConfigTest, EverythingIsOptional) {
  for (const char* text : {"{}", R"({"paths": [], "accelerators": {}})"}) {
    const auto config = topology::ParseTopologyConfig(text, "topology.json");
    ASSERT_TRUE(config) << Describe(config.error());
    EXPECT_TRUE(config->paths.empty());
    EXPECT_EQ(config->accelerators.kinds, DefaultAcceleratorKinds());
  }
  const auto none = topology::ParseTopologyConfig(R"({"accelerators": {"vendors": []}})", "topology.json");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->accelerators.kinds.empty());
}

struct Bad {
  const char* text;
  const char* message;
};

class BadTopologyConfigTest : public ::testing::TestWithParam<Bad> {};

TEST_P(BadTopologyConfigTest, SaysWhere) {
  const auto config = topology::ParseTopologyConfig(GetParam().text, "topology.json");
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find(GetParam().message), std::string::npos) << config.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadTopologyConfigTest,
    ::testing::Values(
        Bad{"[]", "topology.json: /: is not an object"}, Bad{"{", "no valid JSON"},
        Bad{R"({"path": []})", "/path: unknown field"},
        Bad{R"({"paths": {}})", "/paths: is not a list of objects"},
        Bad{R"({"paths": [{"nic": "43:00.0", "accelerator": "0000:1b:00.0", "path": "PIX"}]})",
            "/paths/0/nic: '43:00.0' is not a PCI address"},
        Bad{R"({"paths": [{"nic": "0000:43:00.0", "path": "PIX"}]})", "/paths/0/accelerator: is required"},
        Bad{R"({"paths": [{"nic": "0000:43:00.0", "accelerator": "0000:1b:00.0", "path": "NV18"}]})",
            "/paths/0/path: 'NV18' is not a path class"},
        Bad{R"({"paths": [{"nic": "0000:43:00.0", "accelerator": "0000:1b:00.0", "path": "PIX", "gpu": 1}]})",
            "/paths/0/gpu: unknown field"},
        Bad{R"({"paths": [{"nic": "0000:43:00.0", "accelerator": "0000:1b:00.0", "path": "PIX"},
                          {"nic": "0000:43:00.0", "accelerator": "0000:1B:00.0", "path": "SYS"}]})",
            "/paths/1: '0000:43:00.0 and 0000:1b:00.0' is there twice"},
        Bad{R"({"accelerators": {"vendors": ["10de", "nvidia"]}})",
            "/accelerators/vendors/1: 'nvidia' is not a PCI vendor"},
        Bad{R"({"accelerators": {"ids": {"a/b": "x"}}})", "/accelerators/ids/a~1b: 'x' is not a PCI address"},
        Bad{R"({"accelerators": {"ids": {"a": 3}}})", "/accelerators/ids/a: is not a string"},
        Bad{R"({"accelerators": {"id": {}}})", "/accelerators/id: unknown field"}));

TEST(TopologyConfigTest, TheFileMayBeAbsent) {
  FakeSysfs files;
  const auto absent = topology::ReadTopologyConfig(files.root());
  ASSERT_TRUE(absent);
  EXPECT_EQ(absent->accelerators.kinds, DefaultAcceleratorKinds());
  files.Write(topology::kTopologyPath, R"({"accelerators": {"vendors": ["1002"]}})");
  const auto there = topology::ReadTopologyConfig(files.root());
  ASSERT_TRUE(there);
  EXPECT_EQ(there->accelerators.kinds, (std::vector<AcceleratorKind>{{0x1002, std::nullopt}}));
  files.Write(topology::kTopologyPath, "{");
  const auto broken = topology::ReadTopologyConfig(files.root());
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find(topology::kTopologyPath), std::string::npos)
      << broken.error().message;
}

}  // namespace
}  // namespace railhead::testing

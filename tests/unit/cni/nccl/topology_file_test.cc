// Topology files of real server models, and how NCCL reads them.
#include "cni/nccl/topology_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>

#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"
#include "tests/support/nccl/nccl_model.h"
#include "tests/support/nccl/node.h"
#include "tests/support/nccl/topology_rules.h"

namespace railhead::testing {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string TextOf(const FakeSysfs& sysfs, const nccl::TopologyRequest& request) {
  const auto text = TopologyText(sysfs.root(), request);
  EXPECT_TRUE(text) << Describe(text.error());
  return text.value_or("");
}

// Nodes that no test changes, each made once: a thousand files.
struct MadeNode {
  FakeSysfs sysfs;
  FakeNode node;
};

class TopologyOfNodeTest : public ::testing::TestWithParam<FakeNodeKind> {
 public:
  static void TearDownTestSuite() { Made().clear(); }

 protected:
  TopologyOfNodeTest() {
    std::unique_ptr<MadeNode>& made = Made()[GetParam().name];
    if (made == nullptr) {
      made = std::make_unique<MadeNode>();
      made->node = GetParam().make(made->sysfs);
    }
    made_ = made.get();
  }

  [[nodiscard]] const FakeSysfs& sysfs() const { return made_->sysfs; }
  [[nodiscard]] const FakeNode& node() const { return made_->node; }

 private:
  static std::map<std::string, std::unique_ptr<MadeNode>>& Made() {
    static std::map<std::string, std::unique_ptr<MadeNode>> made;
    return made;
  }
  const MadeNode* made_ = nullptr;
};

TEST_P(TopologyOfNodeTest, IsAsKept) {
  const std::string path = std::string(GOLDEN_DIR) + "/" + GetParam().name + ".xml";
  const std::string text = TextOf(sysfs(), node().pod);
  if (std::getenv("RAILHEAD_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(text, ReadAll(path)) << "if that is right: RAILHEAD_UPDATE_GOLDEN=1";
}

TEST_P(TopologyOfNodeTest, HasTheNodesGpusAndThePodsNics) {
  const auto nccl = NcclModel::Load(TextOf(sysfs(), node().pod));
  ASSERT_TRUE(nccl);
  auto gpus = nccl->Gpus();
  std::sort(gpus.begin(), gpus.end());
  EXPECT_EQ(gpus, node().accelerators);
  auto nets = nccl->Nets();
  std::sort(nets.begin(), nets.end());
  std::vector<std::string> expected;
  for (const nccl::TopologyFileNic& nic : node().pod.nics) expected.push_back(nic.rdma_device);
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(nets, expected);
}

// NCCL has no distance NODE: it counts as PHB.
TEST_P(TopologyOfNodeTest, IsAsFarApartAsTheDevices) {
  const auto nccl = NcclModel::Load(TextOf(sysfs(), node().pod));
  ASSERT_TRUE(nccl);
  for (const nccl::TopologyFileNic& nic : node().pod.nics) {
    const auto function = FindPciDevice(sysfs().root(), nic.address);
    ASSERT_TRUE(function && *function);
    for (const std::string& gpu : node().accelerators) {
      const auto accelerator = FindPciDevice(sysfs().root(), AddressOf(gpu));
      ASSERT_TRUE(accelerator && *accelerator);
      const PciPath path = PciPathBetween(PlaceOf(**function), PlaceOf(**accelerator));
      EXPECT_EQ(nccl->PathBetween(nic.rdma_device, gpu),
                NameOf(path == PciPath::kNode ? PciPath::kPhb : path))
          << nic.rdma_device << " and " << gpu;
    }
  }
}

TEST_P(TopologyOfNodeTest, NoTwoNicsAreMerged) {
  const auto nccl = NcclModel::Load(TextOf(sysfs(), node().pod));
  ASSERT_TRUE(nccl);
  const auto nets = nccl->Nets();
  for (std::size_t i = 0; i < nets.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_FALSE(nccl->WouldMerge(nets[i], nets[j])) << nets[i] << nets[j];
  }
}

TEST_P(TopologyOfNodeTest, IsTheSameForEveryRank) {
  const std::string text = TextOf(sysfs(), node().pod);
  EXPECT_EQ(TextOf(sysfs(), node().pod), text);
  nccl::TopologyRequest backwards = node().pod;
  std::reverse(backwards.nics.begin(), backwards.nics.end());
  EXPECT_EQ(TextOf(sysfs(), backwards), text);
  backwards.accelerators.emplace();
  for (const std::string& gpu : node().accelerators) backwards.accelerators->push_back(AddressOf(gpu));
  std::reverse(backwards.accelerators->begin(), backwards.accelerators->end());
  EXPECT_EQ(TextOf(sysfs(), backwards), text);
}

INSTANTIATE_TEST_SUITE_P(Nodes, TopologyOfNodeTest, ::testing::ValuesIn(AllNodes()),
                         [](const auto& node) { return std::string(node.param.name); });

class TopologyFileTest : public ::testing::Test {
 protected:
  FakeSysfs sysfs_;
};

// No function hangs on the switch that they share.
TEST_F(TopologyFileTest, SwitchesBelowASwitchMeetThere) {
  const auto below = [](const std::string& port, const std::string& bus) {
    return std::vector<std::string>{"0000:10:01.0", "0000:11:00.0", "0000:12:" + port, bus + ":00.0",
                                    bus + ":01.0"};
  };
  sysfs_.AddPf({.address = "0000:22:00.0", .netdev = "rail0", .bridges = below("00.0", "0000:20")});
  sysfs_.AddAccelerator({.address = "0000:32:00.0", .bridges = below("01.0", "0000:30")});
  Finish(sysfs_, 1, Processor::kXeon);
  const auto nccl = NcclModel::Load(TextOf(sysfs_, {{{"mlx5_0", AddressOf("0000:22:00.0"), {}}}, {}}));
  ASSERT_TRUE(nccl);
  EXPECT_EQ(nccl->PathBetween("mlx5_0", "0000:32:00.0"), "PXB");
  EXPECT_EQ(nccl->Switches(), (std::vector<std::string>{"ffff:ff:01.0", "ffff:ff:02.0", "ffff:ff:03.0"}));
}

// NCCL 2.21.5 finds no way from node -1 to another one.
TEST_F(TopologyFileTest, AnUnknownNodeHasANumberBesideOthers) {
  sysfs_.AddPf({.address = "0000:22:00.0", .netdev = "rail0"});
  sysfs_.AddAccelerator({.address = "0000:32:00.0", .numa_node = 1});
  Finish(sysfs_, 2, Processor::kXeon);
  const nccl::TopologyRequest request{{{"mlx5_0", AddressOf("0000:22:00.0"), {}}}, {}};
  const std::string text = TextOf(sysfs_, request);
  EXPECT_LT(text.find("<cpu numaid=\"1\" affinity=\"000000f0\""),
            text.find("<cpu numaid=\"2\" affinity=\"\""))
      << text;
  const auto nccl = NcclModel::Load(text);
  ASSERT_TRUE(nccl);
  EXPECT_EQ(nccl->PathBetween("mlx5_0", "0000:32:00.0"), "SYS");
  EXPECT_EQ(nccl->NodeOf("mlx5_0"), "2");
}

TEST_F(TopologyFileTest, OnlyEqualRatesAreSaid) {
  FakeNode node = MakeRateLimited(sysfs_);
  EXPECT_NE(TextOf(sysfs_, node.pod).find(" speed=\"100000\""), std::string::npos);
  node.pod.nics.front().rate_mbps = 50000;
  EXPECT_EQ(TextOf(sysfs_, node.pod).find(" speed="), std::string::npos);
  node.pod.nics.front().rate_mbps = std::nullopt;
  EXPECT_EQ(TextOf(sysfs_, node.pod).find(" speed="), std::string::npos);
  for (nccl::TopologyFileNic& nic : node.pod.nics) nic.rate_mbps = 0;
  EXPECT_EQ(TextOf(sysfs_, node.pod).find(" speed="), std::string::npos);
}

TEST_F(TopologyFileTest, ALinkIsAsFastAsItsSlowerEnd) {
  const FakeNode node = MakeGrace(sysfs_);
  const std::string host = "/sys/devices/pci0009:00/0009:00:00.0";
  sysfs_.Write(host + "/max_link_speed", "16.0 GT/s PCIe\n");
  sysfs_.Write(host + "/0009:01:00.0/max_link_width", "8\n");
  EXPECT_NE(TextOf(sysfs_, node.pod)
                .find("<pci busid=\"0009:01:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
                      "link_width=\"8\"/>"),
            std::string::npos);
  // Kernels before 5.7 write it so.
  sysfs_.Write(host + "/max_link_speed", "5 GT/s\n");
  EXPECT_NE(TextOf(sysfs_, node.pod).find("link_speed=\"5.0 GT/s PCIe\" link_width=\"8\"/>"),
            std::string::npos);
}

// A guest's links are often unknown; NCCL then takes 8 GT/s and 16 lanes.
TEST_F(TopologyFileTest, AnUnknownLinkIsWhatNcclWouldTake) {
  const FakeNode node = MakeGuest(sysfs_);
  const std::string nic = "/sys/devices/pci0000:00/0000:00:07.0";
  sysfs_.Write(nic + "/max_link_speed", "Unknown\n");
  sysfs_.Write(nic + "/max_link_width", "255\n");
  sysfs_.Remove("/sys/devices/pci0000:00/0000:00:08.0/max_link_speed");
  sysfs_.Remove("/sys/devices/pci0000:00/0000:00:08.0/max_link_width");
  const std::string text = TextOf(sysfs_, node.pod);
  for (const char* busid : {"0000:00:07.0", "0000:00:08.0"}) {
    EXPECT_NE(text.find(std::string("<pci busid=\"") + busid +
                        "\" class=\"0x020000\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\">"),
              std::string::npos)
        << busid << text;
  }
}

// The same values that ranks compute from CPUID.
TEST_F(TopologyFileTest, ProcessorsAreDescribedInNcclsTerms) {
  const FakeNode node = MakeA100Pcie(sysfs_);
  EXPECT_NE(TextOf(sysfs_, node.pod)
                .find("arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"17\""),
            std::string::npos);
  sysfs_.Write("/proc/cpuinfo",
               "processor\t: 0\nvendor_id\t:   Shanghai  \ncpu family\t: 7\nmodel\t\t: 91\n");
  EXPECT_NE(TextOf(sysfs_, node.pod).find("vendor=\"  Shanghai  \" familyid=\"7\" modelid=\"91\""),
            std::string::npos);
  sysfs_.Write("/proc/cpuinfo", "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n");
  EXPECT_NE(TextOf(sysfs_, node.pod).find("arch=\"ppc64\">"), std::string::npos);
  sysfs_.Write("/proc/cpuinfo", "processor\t: 0\nisa\t\t: rv64imafdc\n");
  const auto other = TopologyText(sysfs_.root(), node.pod);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kUnsupported);
}

TEST_F(TopologyFileTest, ALongMaskLosesAbsentProcessorsOnly) {
  const FakeNode node = MakeGrace(sysfs_);
  std::string mask;
  for (int i = 0; i < 40; ++i) mask += "00000000,";
  sysfs_.Write("/sys/devices/system/node/node0/cpumap", mask + "0000ffff,ffffffff\n");
  const std::string text = TextOf(sysfs_, node.pod);
  EXPECT_NE(text.find(",00000000,0000ffff,ffffffff\" arch"), std::string::npos);
  std::string full;
  for (int i = 0; i < 40; ++i) full += "ffffffff,";
  sysfs_.Write("/sys/devices/system/node/node0/cpumap", full + "ffffffff\n");
  EXPECT_NE(TextOf(sysfs_, node.pod).find("numaid=\"0\" affinity=\"\" arch"), std::string::npos);
}

// The driver's devices are listed without a look at a thousand VFs.
TEST_F(TopologyFileTest, AcceleratorsAreTheDrivers) {
  const FakeNode node = MakeA100Pcie(sysfs_);
  const std::string driver = "/sys/bus/pci/drivers/nvidia/";
  sysfs_.Link(driver + node.accelerators[1], "/sys/bus/pci/devices/" + node.accelerators[1]);
  // An NVSwitch, and what AMD's driver has.
  sysfs_.AddAccelerator({.address = "0000:c1:00.0", .numa_node = 1, .class_code = "0x068000"});
  sysfs_.Link(driver + "0000:c1:00.0", "/sys/bus/pci/devices/0000:c1:00.0");
  sysfs_.AddAccelerator({.address = "0000:c2:00.0",
                         .numa_node = 1,
                         .class_code = "0x120000",
                         .driver = "amdgpu",
                         .vendor = "0x1002",
                         .device = "0x74a1"});
  sysfs_.Link("/sys/bus/pci/drivers/amdgpu/0000:c2:00.0", "/sys/bus/pci/devices/0000:c2:00.0");
  const auto nccl = NcclModel::Load(TextOf(sysfs_, node.pod));
  ASSERT_TRUE(nccl);
  EXPECT_EQ(nccl->Gpus(), (std::vector<std::string>{node.accelerators[1], "0000:c2:00.0"}));
}

TEST_F(TopologyFileTest, GraphicsOfOtherVendorsAreNone) {
  MakeE810(sysfs_);
  const auto vfs = sysfs_.AddVfs("0000:4b:00.0", 2, {.rdma = "irdma_{n}"});
  Finish(sysfs_, 1, Processor::kXeon);
  const auto nccl =
      NcclModel::Load(TextOf(sysfs_, {{{"irdma_1", AddressOf(vfs[1]), std::nullopt}}, std::nullopt}));
  ASSERT_TRUE(nccl);
  EXPECT_EQ(nccl->Gpus(), std::vector<std::string>{"0000:65:00.0"});
}

TEST_F(TopologyFileTest, VfsOfOnePfGetAddressesOfTheirOwn) {
  FakeNode node = MakeGrace(sysfs_);
  node.pod.nics.push_back({"mlx5_01", AddressOf("0002:01:00.3"), std::nullopt});
  const auto nccl = NcclModel::Load(TextOf(sysfs_, node.pod));
  ASSERT_TRUE(nccl);
  EXPECT_FALSE(nccl->WouldMerge("mlx5_00", "mlx5_01"));
  EXPECT_EQ(nccl->Net("mlx5_00")->parent->parent->attributes.at("busid"), "ffff:fe:01.0");
  EXPECT_EQ(nccl->Net("mlx5_01")->parent->parent->attributes.at("busid"), "ffff:fe:02.0");
  EXPECT_EQ(nccl->Net("mlx5_10")->parent->parent->attributes.at("busid"), "0012:01:00.2");
}

// Intel VMD has domains of five digits, which NCCL cannot spell.
TEST_F(TopologyFileTest, LongDomains) {
  sysfs_.AddPf({.address = "10000:01:00.0", .netdev = "rail0", .rdma = "mlx5_0", .numa_node = 0});
  sysfs_.AddAccelerator({.address = "10000:02:00.0", .numa_node = 0});
  Finish(sysfs_, 1, Processor::kXeon);
  nccl::TopologyRequest request{{{"mlx5_0", AddressOf("10000:01:00.0"), std::nullopt}},
                                std::vector<PciAddress>{}};
  EXPECT_NE(TextOf(sysfs_, request).find("<pci busid=\"ffff:fe:01.0\" class=\"0x020000\""),
            std::string::npos);
  request.accelerators = {AddressOf("10000:02:00.0")};
  const auto text = TopologyText(sysfs_.root(), request);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kInvalid);
  EXPECT_NE(text.error().message.find("10000:02:00.0"), std::string::npos);
}

TEST_F(TopologyFileTest, WhatIsNotThereIsNamed) {
  FakeNode node = MakeGuest(sysfs_);
  node.pod.nics.push_back({"mlx5_9", AddressOf("0000:00:1f.0"), std::nullopt});
  const auto nic = TopologyText(sysfs_.root(), node.pod);
  ASSERT_FALSE(nic);
  EXPECT_EQ(nic.error().code, ErrorCode::kNotFound);
  EXPECT_NE(nic.error().message.find("NIC 0000:00:1f.0"), std::string::npos);
  node.pod.nics.pop_back();
  node.pod.accelerators = {AddressOf("0000:00:1f.0")};
  const auto gpu = TopologyText(sysfs_.root(), node.pod);
  ASSERT_FALSE(gpu);
  EXPECT_NE(gpu.error().message.find("accelerator 0000:00:1f.0"), std::string::npos);
}

TEST_F(TopologyFileTest, BadRequests) {
  const FakeNode node = MakeGuest(sysfs_);
  nccl::TopologyRequest twice = node.pod;
  twice.nics[1].rdma_device = twice.nics[0].rdma_device;
  EXPECT_EQ(TopologyText(sysfs_.root(), twice).error().code, ErrorCode::kInvalid);
  twice.nics[1] = {"other", twice.nics[0].address, std::nullopt};
  EXPECT_EQ(TopologyText(sysfs_.root(), twice).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(nccl::TopologyText(sysfs_.root(), {}).error().code, ErrorCode::kInvalid);
}

TEST_F(TopologyFileTest, ANameThatNcclCannotReadIsRefused) {
  FakeNode node = MakeGuest(sysfs_);
  for (const std::string& name : {std::string("a\" speed=\"1"), std::string("a\nb"), std::string(254, 'a')}) {
    node.pod.nics[0].rdma_device = name;
    const auto text = TopologyText(sysfs_.root(), node.pod);
    ASSERT_FALSE(text) << name;
    EXPECT_EQ(text.error().code, ErrorCode::kInvalid);
  }
}

// No real pod has 300 NICs. NCCL would stop at its start.
TEST_F(TopologyFileTest, TooManyNicsAreRefused) {
  sysfs_.AddPf({.address = "0000:43:00.0", .netdev = "rail0"});
  const auto vfs = sysfs_.AddVfs("0000:43:00.0", 90);
  Finish(sysfs_, 1, Processor::kXeon);
  nccl::TopologyRequest request{{}, std::vector<PciAddress>{}};
  for (const std::string& vf : vfs)
    request.nics.push_back({"mlx5_" + vf.substr(8, 2) + vf.substr(11), AddressOf(vf), {}});
  const auto text = TopologyText(sysfs_.root(), request);
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().message.find("NCCL takes 255"), std::string::npos) << Describe(text.error());
}

}  // namespace
}  // namespace railhead::testing

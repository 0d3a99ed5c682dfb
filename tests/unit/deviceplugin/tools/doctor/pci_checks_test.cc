// VFs, ACS, IOMMU, GPUDirect: judged, and read from a configuration space as the kernel shows it.
#include <algorithm>

#include "deviceplugin/tools/doctor/facts.h"
#include "deviceplugin/tools/doctor/read_facts.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_capabilities.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/unit/deviceplugin/tools/doctor/support.h"

namespace railhead::testing {
namespace {

using doctor::Status;

TEST(AcsTest, Redirection) {
  for (const std::uint16_t control : {0x04, 0x08, 0x1d}) {
    doctor::NodeFacts node = GoodNode();
    node.bridges = std::vector<doctor::BridgeFacts>{
        {At("0000:02:00.0"), std::optional<std::uint16_t>(control), At("0000:03:00.0"), At("0000:01:00.0")}};
    const auto verdict = doctor::CheckAcs(node);
    Expect(verdict, Status::kFailure, "bridge 0000:02:00.0 between 0000:03:00.0 and 0000:01:00.0");
    EXPECT_NE(verdict.Fix().find("setpci -s 0000:02:00.0"), std::string::npos) << verdict.Fix();
  }
}

TEST(AcsTest, WhatIsNoRedirection) {
  doctor::NodeFacts node = GoodNode();
  // Source validation, upstream forwarding; no ACS at all.
  for (const std::optional<std::uint16_t> control :
       {std::optional<std::uint16_t>(0x11), std::optional<std::uint16_t>()}) {
    node.bridges = std::vector<doctor::BridgeFacts>{{At("0000:02:00.0"), control, {}, {}}};
    EXPECT_EQ(doctor::CheckAcs(node).status(), Status::kOk);
  }
  node.bridges = std::vector<doctor::BridgeFacts>{};
  Expect(doctor::CheckAcs(node), Status::kSkipped, "no accelerator shares a switch");
}

TEST(IommuTest, Translation) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[1].iommu = std::string("DMA-FQ");
  Expect(doctor::CheckIommu(node), Status::kWarning, "pf1 (0000:13:00.0): the IOMMU translates (DMA-FQ)");
  node = GoodNode();
  node.accelerators =
      std::vector<doctor::AcceleratorFacts>{{At("0000:01:00.0"), 0x10de, "", std::string("DMA")}};
  Expect(doctor::CheckIommu(node), Status::kWarning, "accelerator 0000:01:00.0");
}

TEST(GpuDirectTest, PeermemOrDmabuf) {
  doctor::NodeFacts node = GoodNode();
  node.gpu.peermem = false;
  Expect(doctor::CheckGpuDirect(node), Status::kFailure, "not of the open modules");
  node.gpu.open = true;
  Expect(doctor::CheckGpuDirect(node), Status::kOk, "dma-buf");
  for (const char* old : {"5.11.0-generic", "4.18.0-553.el8"}) {
    node.kernel = old;
    Expect(doctor::CheckGpuDirect(node), Status::kFailure, "older than 5.12");
  }
  for (const char* enough : {"5.12.1", "6.1.0-44-amd64", "7.0"}) {
    node.kernel = enough;
    EXPECT_EQ(doctor::CheckGpuDirect(node).status(), Status::kOk) << enough;
  }
  node.gpu.open = doctor::Fact<bool>::Unknown("no permission");
  Expect(doctor::CheckGpuDirect(node), Status::kWarning, "no permission");
  node.gpu.nvidia = false;
  Expect(doctor::CheckGpuDirect(node), Status::kWarning, "driver is not loaded");
  node.accelerators = std::vector<doctor::AcceleratorFacts>{{At("0000:01:00.0"), 0x1002, "amdgpu", {}}};
  Expect(doctor::CheckGpuDirect(node), Status::kSkipped, "no NVIDIA GPU");
}

TEST(GpuIdsTest, MigSlicesNeedAProgram) {
  doctor::NodeFacts node = GoodNode();
  Expect(doctor::CheckGpuIds(node), Status::kOk, "has railhead-nvml");
  node.gpu.nvml = false;
  Expect(doctor::CheckGpuIds(node), Status::kNote, "the GPU of a MIG slice is unknown");
  Fabric fabric = *node.fabric;
  fabric.pools.front().late = true;
  node.fabric = fabric;
  Expect(doctor::CheckGpuIds(node), Status::kWarning, "the GPU of a MIG slice is unknown");
  node.gpu.nvml = doctor::Fact<bool>::Unknown("railheadd does not run");
  Expect(doctor::CheckGpuIds(node), Status::kSkipped, "railheadd does not run");
  node.accelerators = std::vector<doctor::AcceleratorFacts>{{At("0000:01:00.0"), 0x1002, "amdgpu", {}}};
  Expect(doctor::CheckGpuIds(node), Status::kSkipped, "no NVIDIA GPU");
}

TEST(BridgesTest, BetweenTwoFunctions) {
  const std::string top = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/";
  EXPECT_EQ(doctor::BridgesBetween(top + "0000:02:00.0/0000:03:00.0", top + "0000:02:01.0/0000:04:00.0"),
            (std::vector<PciAddress>{At("0000:02:00.0"), At("0000:02:01.0")}));
  EXPECT_TRUE(doctor::BridgesBetween(top + "0000:02:00.0", top + "0000:02:00.1").empty());
}

// A configuration space with a chain of extended capabilities.
std::string Config(const std::vector<std::pair<std::uint16_t, std::uint16_t>>& capabilities) {
  std::string config(4096, '\0');
  int at = 0x100;
  for (std::size_t i = 0; i < capabilities.size(); ++i) {
    const int next = i + 1 < capabilities.size() ? at + 0x20 : 0;
    const std::uint32_t header = capabilities[i].first | 1U << 16U | static_cast<std::uint32_t>(next) << 20U;
    for (int byte = 0; byte < 4; ++byte)
      config[static_cast<std::size_t>(at + byte)] = static_cast<char>(header >> (8 * byte));
    // The same word at 6 (ACS's control) and 8 (SR-IOV's).
    for (const int offset : {6, 8}) {
      config[static_cast<std::size_t>(at + offset)] = static_cast<char>(capabilities[i].second);
      config[static_cast<std::size_t>(at + offset + 1)] = static_cast<char>(capabilities[i].second >> 8);
    }
    at += 0x20;
  }
  return config;
}

class PciConfigTest : public ::testing::Test {
 protected:
  Result<std::optional<std::uint16_t>> Read(std::uint16_t id, int offset) {
    return ReadExtendedCapability(sysfs_.root(), At("0000:43:00.0"), id, offset);
  }
  void Write(const std::string& config) { sysfs_.Write("/sys/bus/pci/devices/0000:43:00.0/config", config); }
  FakeSysfs sysfs_;
};

TEST_F(PciConfigTest, FindsCapabilities) {
  Write(Config({{0x0001, 0xffff}, {kCapabilityAcs, 0x001d}, {kCapabilitySriov, 0x1219}}));
  EXPECT_EQ(Read(kCapabilityAcs, 6).value(), 0x001d);
  EXPECT_EQ(Read(kCapabilitySriov, 8).value(), 0x1219);
  EXPECT_EQ(Read(0x0042, 8).value(), std::nullopt);
}

TEST_F(PciConfigTest, FunctionsWithoutExtendedCapabilities) {
  Write(std::string(4096, '\0'));
  EXPECT_EQ(Read(kCapabilityAcs, 6).value(), std::nullopt);
  Write(std::string(4096, '\xff'));  // asleep
  EXPECT_EQ(Read(kCapabilityAcs, 6).value(), std::nullopt);
  Write(std::string(256, '\0'));
  EXPECT_EQ(Read(kCapabilityAcs, 6).value(), std::nullopt);
}

TEST_F(PciConfigTest, ACircleEnds) {
  std::string config = Config({{0x0001, 0}, {0x0002, 0}});
  config[0x122] = 1;  // back to the first: next is 0x100
  config[0x123] = 0x10;
  Write(config);
  EXPECT_EQ(Read(kCapabilityAcs, 6).value(), std::nullopt);
}

TEST_F(PciConfigTest, WhatCannotBeReadIsAnError) {
  const auto absent = Read(kCapabilityAcs, 6);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
  // It ends in the middle, as for a reader without CAP_SYS_ADMIN.
  Write(Config({{0x0001, 0}, {kCapabilityAcs, 0x001d}}).substr(0, 0x110));
  const auto hidden = Read(kCapabilityAcs, 6);
  ASSERT_FALSE(hidden);
  EXPECT_EQ(hidden.error().code, ErrorCode::kPermission);
}

TEST(VfCountTest, NoVfs) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[1].vfs.clear();
  const auto none = doctor::CheckVfCount(node);
  Expect(none, Status::kFailure, "pf1 (0000:13:00.0) has 0 of 16 VFs");
  EXPECT_NE(none.Fix().find("railctl vfs apply"), std::string::npos);
  node.pfs[1].total_vfs = 0;
  const auto impossible = doctor::CheckVfCount(node);
  Expect(impossible, Status::kFailure, "can have no VFs");
  EXPECT_NE(impossible.Fix().find("SRIOV_EN"), std::string::npos);
}

TEST(VfCountTest, PoolsOfPfsNeedNone) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[1].vfs.clear();
  Fabric fabric = *node.fabric;
  fabric.pools[0].device = PoolDevice::kPf;
  node.fabric = fabric;
  Expect(doctor::CheckVfCount(node), Status::kSkipped, "no pool hands out VFs");
}

TEST(AriTest, ManyVfsWithoutAri) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[0].sriov_control = std::uint16_t{0x09};
  Expect(doctor::CheckAri(node), Status::kNote, "pf0 (0000:03:00.0), with up to 16 VFs");
  node.pfs[0].total_vfs = 7;
  EXPECT_EQ(doctor::CheckAri(node).status(), Status::kOk);
}

TEST(VfOrderTest, OutOfOrder) {
  doctor::NodeFacts node = GoodNode();
  // A VF that was unbound and bound again.
  node.rdma_order = std::vector<std::string>{"v01", "v10", "v11", "v00"};
  Expect(doctor::CheckVfOrder(node), Status::kWarning, "v00 (VF 0 of pf0 (0000:03:00.0)) comes after v11");
  // The second PF's VFs were made first.
  node.rdma_order = std::vector<std::string>{"v10", "v11", "v00", "v01"};
  Expect(doctor::CheckVfOrder(node), Status::kWarning, "v00 (VF 0 of pf0 (0000:03:00.0)) comes after v11");
}

TEST(VfOrderTest, OnlyWhatIsHere) {
  doctor::NodeFacts node = GoodNode();
  // In exclusive mode the RDMA devices of pods are not visible. A soft RoCE device does not count as a VF.
  node.rdma_order = std::vector<std::string>{"rxe0", "v00", "v11"};
  Expect(doctor::CheckVfOrder(node), Status::kOk, "2 RDMA devices");
  node.rdma_order = std::vector<std::string>{"mlx5_0"};
  Expect(doctor::CheckVfOrder(node), Status::kSkipped, "no VF of a rail");
}

TEST(BandwidthTest, VfsThatShare) {
  doctor::NodeFacts node = GoodNode();
  VfSettings unlimited;
  unlimited.rate.emplace();
  node.pfs[0].vf_settings = std::map<int, VfSettings>{{0, unlimited}, {1, VfSettings{}}};
  Expect(doctor::CheckBandwidth(node), Status::kNote, "2 VFs share its port, 2 of them without a limit");
  node.pfs[0].vf_settings = doctor::Fact<std::map<int, VfSettings>>::Unknown("not here");
  Expect(doctor::CheckBandwidth(node), Status::kNote, "not known (not here)");
  node.pfs[0].vfs.pop_back();
  EXPECT_EQ(doctor::CheckBandwidth(node).status(), Status::kOk);
}

TEST(SpoofingTest, VfsThatMaySendFromAnyMac) {
  doctor::NodeFacts node = GoodNode();
  EXPECT_EQ(doctor::CheckSpoofing(node).status(), Status::kOk);
  const auto has = [&](std::optional<bool> spoofchk, const char* mac) {
    VfSettings settings;
    settings.spoofchk = spoofchk;
    settings.mac = *MacAddress::Parse(mac);
    auto vfs = *node.pfs[1].vf_settings;
    vfs[1] = settings;
    node.pfs[1].vf_settings = vfs;
    return doctor::CheckSpoofing(node);
  };
  Expect(has(false, "02:00:00:00:00:01"), Status::kOk, "2 VFs");
  Expect(has(false, "00:00:00:00:00:00"), Status::kWarning, "without a MAC of VF 1");
  Expect(has(std::nullopt, "02:00:00:00:00:01"), Status::kWarning, "its driver has no spoofchk for VF 1");
  Fabric fabric = *node.fabric;
  fabric.rails[1].spoof_check = false;
  node.fabric = fabric;
  Expect(doctor::CheckSpoofing(node), Status::kNote, "rail1 has spoofchk off");
  node.pfs[0].vf_settings = doctor::Fact<std::map<int, VfSettings>>::Unknown("not here");
  Expect(doctor::CheckSpoofing(node), Status::kNote, "not known (not here)");
}

}  // namespace
}  // namespace railhead::testing

#include "deviceplugin/node/topology/accelerator_ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "deviceplugin/node/topology/find_by_nvml.h"
#include "tests/support/sysfs/machines.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

PciAddress At(const std::string& text) {
  return *PciAddress::Parse(text);
}

// The driver shows only question marks for a GPU that it has not initialised.
std::string Uninitialised() {
  const std::string four(4, '?');
  std::string uuid = "GPU-" + four + four;
  for (int i = 0; i < 3; ++i) uuid += "-" + four;
  return "GPU UUID: \t " + uuid + "-" + four + four + four + "\n";
}

class AcceleratorIdsTest : public ::testing::Test {
 protected:
  AcceleratorIdsTest() : machine_(MakeDgxH100(sysfs_)) {}

  // What `id` means; "" for nothing.
  [[nodiscard]] std::string Find(
      const std::string& id, topology::AcceleratorIds::UuidLookup beyond_proc = {},
      const std::string& resource = "nvidia.com/gpu",
      topology::AcceleratorIds::Effort effort = topology::AcceleratorIds::Effort::kLibrary) const {
    const auto accelerators = ListAccelerators(sysfs_.root(), DefaultAcceleratorKinds());
    const topology::AcceleratorIds ids(sysfs_.root(), *accelerators, table_, std::move(beyond_proc));
    const auto found = ids.Find(id, resource, effort);
    return found ? found->ToString() : "";
  }

  FakeSysfs sysfs_;
  FakeMachine machine_;
  std::map<std::string, PciAddress> table_;
};

TEST_F(AcceleratorIdsTest, PciAddresses) {
  EXPECT_EQ(Find("0000:1b:00.0"), "0000:1b:00.0");
  EXPECT_EQ(Find("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(Find("0000:1c:00.0"), "");
  EXPECT_EQ(Find("0000:18:00.0"), "") << "that is a NIC";
  EXPECT_EQ(Find("1b:00.0"), "");
}

TEST_F(AcceleratorIdsTest, NvidiaUuids) {
  EXPECT_EQ(Find("GPU-00000000-0000-0000-0000-000000000003"), "0000:61:00.0");
  EXPECT_EQ(Find("GPU-00000000-0000-0000-0000-000000000003::2"), "0000:61:00.0");
  EXPECT_EQ(Find("GPU-00000000-0000-0000-0000-000000000003-1"), "0000:61:00.0");
  EXPECT_EQ(Find("MIG-GPU-00000000-0000-0000-0000-000000000003/1/0"), "0000:61:00.0");
  EXPECT_EQ(Find("GPU-00000000-0000-0000-0000-000000000009"), "");
  EXPECT_EQ(Find("GPU-00000000-0000-0000-0000-000000000003::"), "");
  EXPECT_EQ(Find("GPU-00000000-0000-0000-0000-000000000003::x"), "");
  EXPECT_EQ(Find("GPU-00000000-0000-0000-0000-000000000003x"), "");
  EXPECT_EQ(Find("GPU-"), "");
}

TEST_F(AcceleratorIdsTest, UuidsAreComparedWithoutCase) {
  sysfs_.Write("/proc/driver/nvidia/gpus/0000:1b:00.0/information",
               "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-ABCDEF00-0000-0000-0000-000000000000\r\n");
  EXPECT_EQ(Find("GPU-abcdef00-0000-0000-0000-000000000000"), "0000:1b:00.0");
}

TEST_F(AcceleratorIdsTest, WhatProcDoesNotSayIsAskedElsewhere) {
  sysfs_.Write("/proc/driver/nvidia/gpus/0000:1b:00.0/information", Uninitialised());
  std::vector<std::string> asked;
  const auto elsewhere = [&](const std::string& uuid) {
    asked.push_back(uuid);
    return std::optional<PciAddress>(At("0000:1b:00.0"));
  };
  EXPECT_EQ(Find("GPU-00000000-0000-0000-0000-000000000000", elsewhere), "0000:1b:00.0");
  EXPECT_EQ(Find("MIG-11111111-0000-0000-0000-000000000000::1", elsewhere), "0000:1b:00.0");
  EXPECT_EQ(Find("GPU-00000000-0000-0000-0000-000000000001", elsewhere), "0000:43:00.0");
  EXPECT_EQ(Find("0000:43:00.0", elsewhere), "0000:43:00.0");
  EXPECT_EQ(asked, (std::vector<std::string>{"GPU-00000000-0000-0000-0000-000000000000",
                                             "MIG-11111111-0000-0000-0000-000000000000"}));
  // An answer that does not name an accelerator of the node does not count.
  EXPECT_EQ(Find("MIG-11111111-0000-0000-0000-000000000000",
                 [](const std::string&) { return std::optional<PciAddress>(At("0000:77:00.0")); }),
            "");
  EXPECT_EQ(Find("MIG-11111111-0000-0000-0000-000000000000"), "");
}

TEST_F(AcceleratorIdsTest, Positions) {
  EXPECT_EQ(Find("0"), "0000:1b:00.0");
  EXPECT_EQ(Find("7"), "0000:df:00.0");
  EXPECT_EQ(Find("7::1"), "0000:df:00.0");
  EXPECT_EQ(Find("8"), "");
  EXPECT_EQ(Find("-1"), "");
  EXPECT_EQ(Find("99999999999999999999"), "");
  EXPECT_EQ(Find(""), "");
}

TEST_F(AcceleratorIdsTest, PositionsOfOtherThingsMeanNothing) {
  for (const char* resource :
       {"rdma/hca_shared", "example.com/output", "devices.kubevirt.io/kvm", "smarter-devices/fuse"})
    EXPECT_EQ(Find("0", {}, resource), "") << resource;
  for (const char* resource : {"nvidia.com/gpu", "gpu.intel.com/i915", "huawei.com/Ascend910",
                               "nvidia.com/mig-1g.5gb", "aws.amazon.com/neuroncore", "alibabacloud.com/vgpu"})
    EXPECT_EQ(Find("0", {}, resource), "0000:1b:00.0") << resource;
}

TEST_F(AcceleratorIdsTest, TheLibraryIsNotAskedWhereSomebodyWaits) {
  int asked = 0;
  const auto lookup = topology::Remembering([&](const std::string&) {
    ++asked;
    return std::optional<PciAddress>(At("0000:1b:00.0"));
  });
  const std::string mig = "MIG-11111111-0000-0000-0000-000000000000";
  EXPECT_EQ(Find(mig, lookup, "nvidia.com/gpu", topology::AcceleratorIds::Effort::kFiles), "");
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(Find(mig, lookup), "0000:1b:00.0");
  EXPECT_EQ(Find(mig, lookup), "0000:1b:00.0");
  EXPECT_EQ(asked, 1) << "once, however many pods have it";
}

TEST_F(AcceleratorIdsTest, WhatIsNotFoundIsAskedForAgain) {
  int asked = 0;
  const auto lookup = topology::Remembering([&](const std::string&) {
    ++asked;
    return std::optional<PciAddress>();
  });
  EXPECT_EQ(Find("MIG-11111111-0000-0000-0000-000000000000", lookup), "");
  EXPECT_EQ(Find("MIG-11111111-0000-0000-0000-000000000000", lookup), "");
  EXPECT_EQ(asked, 2) << "the driver may have come up meanwhile";
}

// A plugin that counts memory gives a pod an id for each MiB of a GPU.
TEST_F(AcceleratorIdsTest, AskedOnceForAllReplicas) {
  table_["MIG-22222222-0000-0000-0000-000000000000-7"] = At("0000:61:00.0");
  std::vector<std::string> ids = {"0000:43:00.0", "slot-1", "1"};
  for (const char* const replica : {"", "-", "::"}) {
    for (int i = 0; i < 1000; ++i) {
      for (const char* const shared :
           {"GPU-00000000-0000-0000-0000-000000000003", "MIG-11111111-0000-0000-0000-000000000000",
            "MIG-22222222-0000-0000-0000-000000000000", "nvidia2"}) {
        ids.push_back(shared + (*replica == 0 ? std::string() : replica + std::to_string(i)));
      }
    }
  }
  std::map<std::string, int> asked;
  const auto lookup = [&](const std::string& uuid) {
    ++asked[uuid];
    return uuid.starts_with("MIG-1") ? std::optional(At("0000:1b:00.0")) : std::nullopt;
  };
  const auto accelerators = ListAccelerators(sysfs_.root(), DefaultAcceleratorKinds());
  const topology::AcceleratorIds all(sysfs_.root(), *accelerators, table_, lookup);
  std::vector<PciAddress> each;
  for (const std::string& id : ids) {
    const auto found = all.Find(id, "nvidia.com/gpu");
    if (found && std::ranges::find(each, *found) == each.end()) each.push_back(*found);
  }
  asked.clear();
  EXPECT_EQ(all.FindAll(ids, "nvidia.com/gpu"), each);
  EXPECT_EQ(asked, (std::map<std::string, int>{{"MIG-11111111-0000-0000-0000-000000000000", 1},
                                               {"MIG-22222222-0000-0000-0000-000000000000", 1}}));
}

TEST_F(AcceleratorIdsTest, DeviceFiles) {
  EXPECT_EQ(Find("gpu-2", {}, "gpu.nvidia.com"), "0000:52:00.0");
  EXPECT_EQ(Find("nvidia2"), "0000:52:00.0");
  EXPECT_EQ(Find("nvidia2/gi1"), "0000:52:00.0");
  EXPECT_EQ(Find("nvidia8"), "");
  EXPECT_EQ(Find("nvidia"), "");
  EXPECT_EQ(Find("nvidiactl"), "");
  sysfs_.Link("/sys/class/drm/card3/device", "/sys/bus/pci/devices/0000:9d:00.0");
  EXPECT_EQ(Find("card3"), "0000:9d:00.0");
  EXPECT_EQ(Find("card3-1"), "0000:9d:00.0");
  EXPECT_EQ(Find("card4-0"), "");
  EXPECT_EQ(Find("card"), "");
}

TEST_F(AcceleratorIdsTest, TheTableWins) {
  table_ = {{"amdgpu_xcp_30", At("0000:43:00.0")}, {"0", At("0000:df:00.0")}, {"gone", At("0000:77:00.0")}};
  EXPECT_EQ(Find("amdgpu_xcp_30"), "0000:43:00.0");
  EXPECT_EQ(Find("amdgpu_xcp_30::4"), "0000:43:00.0");
  EXPECT_EQ(Find("0"), "0000:df:00.0");
  EXPECT_EQ(Find("gone"), "");
}

TEST_F(AcceleratorIdsTest, AVfMeansItsAccelerator) {
  sysfs_.AddVfs("0000:1b:00.0", 1, {.netdev = "", .driver = "", .device = "0x2330"});
  EXPECT_EQ(Find("0000:1b:02.0"), "0000:1b:00.0");
}

TEST_F(AcceleratorIdsTest, WithoutNvidiasDriverThereAreNoUuids) {
  sysfs_.Remove("/proc/driver/nvidia");
  EXPECT_EQ(Find("GPU-00000000-0000-0000-0000-000000000003"), "");
  EXPECT_EQ(Find("nvidia0"), "");
  const topology::AcceleratorIds ids(sysfs_.root(), {}, {});
  EXPECT_EQ(ids.UuidOf(At("0000:1b:00.0")), "");
}

TEST_F(AcceleratorIdsTest, UuidOf) {
  const topology::AcceleratorIds ids(sysfs_.root(), {}, {});
  EXPECT_EQ(ids.UuidOf(At("0000:1b:00.0")), "GPU-00000000-0000-0000-0000-000000000000");
  sysfs_.Write("/proc/driver/nvidia/gpus/0000:1b:00.0/information", Uninitialised());
  EXPECT_EQ(ids.UuidOf(At("0000:1b:00.0")), "");
}

// railhead-nvml is a script here; unit.nvml has the program.
class NvmlProgramTest : public ::testing::Test {
 protected:
  std::optional<PciAddress> Ask(const std::string& script, std::chrono::milliseconds limit) {
    root_.Write(kPath, "#!/bin/sh\n" + script, true);
    return topology::FindByNvml("MIG-x", root_.directory() + kPath, limit);
  }
  static constexpr const char* kPath = "/usr/libexec/railhead/railhead-nvml";
  static constexpr std::chrono::seconds kLong{60};
  const TempRoot root_;
};

TEST_F(NvmlProgramTest, ItsAnswerIsAnAddress) {
  EXPECT_EQ(Ask("[ \"$*\" = MIG-x ] && echo 0002:9d:01.0", kLong), At("0002:9d:01.0"));
  EXPECT_EQ(Ask("echo 0002:9d:01.0; exit 1", kLong), std::nullopt);
  EXPECT_EQ(Ask("echo no address", kLong), std::nullopt);
  EXPECT_EQ(Ask("exit 0", kLong), std::nullopt);
}

TEST_F(NvmlProgramTest, ADriverThatHangsIsNotWaitedFor) {
  EXPECT_EQ(Ask("exec >/dev/null; while :; do :; done", std::chrono::milliseconds(200)), std::nullopt);
}

TEST_F(NvmlProgramTest, IsBesideAnotherProgramOrInItsDirectory) {
  EXPECT_EQ(topology::FindNvmlProgram(root_.root(), "/usr/bin/railheadd"), std::nullopt);
  root_.Write(kPath, "", true);
  EXPECT_EQ(topology::FindNvmlProgram(root_.root(), "/usr/bin/railheadd"), root_.directory() + kPath);
  EXPECT_EQ(topology::FindNvmlProgram(root_.root(), ""), root_.directory() + kPath);
  root_.Write("/usr/bin/railhead-nvml", "", true);
  EXPECT_EQ(topology::FindNvmlProgram(root_.root(), "/usr/bin/railheadd"),
            root_.directory() + "/usr/bin/railhead-nvml");
}

}  // namespace
}  // namespace railhead::testing

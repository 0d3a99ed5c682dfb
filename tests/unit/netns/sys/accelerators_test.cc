#include "netns/sys/accelerators.h"

#include <gtest/gtest.h>

#include "tests/support/sysfs/machines.h"

namespace railhead::testing {
namespace {

std::vector<std::string> Found(const FakeSysfs& sysfs,
                               const std::vector<AcceleratorKind>& kinds = DefaultAcceleratorKinds(),
                               const std::set<PciAddress>& others = {}) {
  const auto accelerators = ListAccelerators(sysfs.root(), kinds, others);
  EXPECT_TRUE(accelerators) << Describe(accelerators.error());
  std::vector<std::string> addresses;
  if (!accelerators) return addresses;
  for (const Accelerator& accelerator : *accelerators) addresses.push_back(accelerator.address.ToString());
  return addresses;
}

class MachineTest : public ::testing::TestWithParam<MachineKind> {};

TEST_P(MachineTest, HasItsAccelerators) {
  FakeSysfs sysfs;
  const FakeMachine machine = GetParam().make(sysfs);
  EXPECT_EQ(Found(sysfs), machine.accelerators);
}

INSTANTIATE_TEST_SUITE_P(All, MachineTest, ::testing::ValuesIn(AllMachines()),
                         [](const auto& kind) { return kind.param.name; });

TEST(AcceleratorsTest, ClassAndVendorDecide) {
  FakeSysfs sysfs;
  int bus = 0x10;
  const auto add = [&](const char* vendor, const char* class_code) {
    char address[16];
    (void)std::snprintf(address, sizeof address, "0000:%02x:00.0", static_cast<unsigned>(bus++));
    sysfs.AddAccelerator({.address = address, .class_code = class_code, .vendor = vendor});
    return std::string(address);
  };
  std::vector<std::string> expected;
  for (const char* class_code : {"0x030000", "0x030200", "0x038000", "0x120000"}) {
    expected.push_back(add("0x10de", class_code));
    expected.push_back(add("0x1002", class_code));
  }
  add("0x8086", "0x030000");  // integrated graphics
  expected.push_back(add("0x8086", "0x038000"));
  expected.push_back(add("0x8086", "0x120000"));
  add("0x1a03", "0x030000");
  add("0x10de", "0x040300");  // a GPU's audio function
  add("0x10de", "0x068000");  // NVSwitch
  const std::string gaudi = add("0x1da3", "0x120000");
  const std::string trainium = add("0x1d0f", "0x088000");
  EXPECT_EQ(Found(sysfs), expected);
  EXPECT_EQ(Found(sysfs, {{0x1da3, std::nullopt}, {0x1d0f, 0x0880}}),
            (std::vector<std::string>{gaudi, trainium}));
  EXPECT_EQ(Found(sysfs, {}), std::vector<std::string>{});
  expected.erase(expected.begin());
  EXPECT_EQ(Found(sysfs, DefaultAcceleratorKinds(), {*PciAddress::Parse("0000:10:00.0")}), expected);
}

TEST(AcceleratorsTest, FactsAreThoseOfSysfs) {
  FakeSysfs sysfs;
  MakeDgxH100(sysfs);
  const auto accelerators = ListAccelerators(sysfs.root(), DefaultAcceleratorKinds());
  ASSERT_TRUE(accelerators);
  const Accelerator& last = accelerators->back();
  EXPECT_EQ(last.vendor, 0x10de);
  EXPECT_EQ(last.device, 0x2330);
  EXPECT_EQ(last.class_code, 0x0302);
  EXPECT_EQ(last.driver, "nvidia");
  EXPECT_EQ(last.numa_node, 1);
  EXPECT_EQ(last.path,
            "/sys/devices/pci0000:d9/0000:d9:01.0/0000:da:00.0/0000:db:01.0/0000:dd:00.0/0000:de:00.0/"
            "0000:df:00.0");
}

TEST(AcceleratorsTest, VfsAreLeftOut) {
  FakeSysfs sysfs;
  sysfs.AddAccelerator({.address = "0000:21:00.0"});
  sysfs.AddVfs("0000:21:00.0", 2, {.netdev = "", .driver = "", .device = "0x2330"});
  for (const char* vf : {"0000:21:02.0", "0000:21:02.1"}) {
    sysfs.Write(std::string("/sys/bus/pci/devices/") + vf + "/class", "0x030200\n");
  }
  EXPECT_EQ(Found(sysfs), std::vector<std::string>{"0000:21:00.0"});
}

TEST(AcceleratorsTest, ANodeWithoutPciHasNone) {
  const FakeSysfs sysfs;
  EXPECT_EQ(Found(sysfs), std::vector<std::string>{});
}

TEST(AcceleratorsTest, WhatSysfsNeverSaysIsAnError) {
  FakeSysfs sysfs;
  sysfs.AddAccelerator({.address = "0000:21:00.0"});
  sysfs.Write("/sys/bus/pci/devices/0000:21:00.0/class", "rubbish\n");
  const auto accelerators = ListAccelerators(sysfs.root(), DefaultAcceleratorKinds());
  ASSERT_FALSE(accelerators);
  EXPECT_NE(accelerators.error().message.find("rubbish"), std::string::npos) << accelerators.error().message;
}

TEST(AcceleratorKindTest, Text) {
  EXPECT_EQ(AcceleratorKind::Parse("10DE"), (AcceleratorKind{0x10de, std::nullopt}));
  EXPECT_EQ(AcceleratorKind::Parse("8086:0380"), (AcceleratorKind{0x8086, 0x0380}));
  for (const char* bad : {"", "10d", "0x10de", "10de:", "10de:03", "10de:0302:00", "nvidia", "10deg"}) {
    EXPECT_EQ(AcceleratorKind::Parse(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace railhead::testing

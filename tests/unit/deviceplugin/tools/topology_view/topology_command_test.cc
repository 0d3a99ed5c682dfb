// `railctl topology` as a process.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "netns/base/text.h"
#include "tests/support/process.h"
#include "tests/support/sysfs/machines.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

class TopologyCommandTest : public ::testing::Test {
 protected:
  [[nodiscard]] ProcessOutput Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {RAILCTL, "topology"});
    return RunProcess(arguments, {{"RAILHEAD_ROOT", sysfs_.directory()}}, "");
  }

  FakeSysfs sysfs_;
};

TEST_F(TopologyCommandTest, PrintsTheMatrix) {
  const FakeMachine machine = MakePcieA100(sysfs_);
  sysfs_.AddVfs(machine.nics[0], 4);
  sysfs_.Write("/etc/railhead/fabric.json",
               R"({"version": 1, "rails": [{"name": "leaf-a", "pf": "rail0", "vlan": 100}]})");
  sysfs_.Write("/etc/railhead/topology.json",
               R"({"paths": [{"nic": "0000:2b:00.0", "accelerator": "0000:23:00.0", "path": "PXB"}]})");
  const ProcessOutput output = Run({});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(output.err, "");
  const std::string expected =
      "      GPU0  GPU1  GPU2  GPU3  GPU4  GPU5  GPU6  GPU7  NIC0  NIC1  NIC2  NIC3  NUMA\n"
      "GPU0  X     PIX   PHB   PHB   SYS   SYS   SYS   SYS   PIX   PXB*  SYS   SYS   0\n"
      "GPU1  PIX   X     PHB   PHB   SYS   SYS   SYS   SYS   PIX   PHB   SYS   SYS   0\n"
      "GPU2  PHB   PHB   X     PIX   SYS   SYS   SYS   SYS   PHB   PIX   SYS   SYS   0\n"
      "GPU3  PHB   PHB   PIX   X     SYS   SYS   SYS   SYS   PHB   PIX   SYS   SYS   0\n"
      "GPU4  SYS   SYS   SYS   SYS   X     PIX   PHB   PHB   SYS   SYS   PIX   PHB   1\n"
      "GPU5  SYS   SYS   SYS   SYS   PIX   X     PHB   PHB   SYS   SYS   PIX   PHB   1\n"
      "GPU6  SYS   SYS   SYS   SYS   PHB   PHB   X     PIX   SYS   SYS   PHB   PIX   1\n"
      "GPU7  SYS   SYS   SYS   SYS   PHB   PHB   PIX   X     SYS   SYS   PHB   PIX   1\n"
      "NIC0  PIX   PIX   PHB   PHB   SYS   SYS   SYS   SYS   X     PHB   SYS   SYS   0\n"
      "NIC1  PXB*  PHB   PIX   PIX   SYS   SYS   SYS   SYS   PHB   X     SYS   SYS   0\n"
      "NIC2  SYS   SYS   SYS   SYS   PIX   PIX   PHB   PHB   SYS   SYS   X     PHB   1\n"
      "NIC3  SYS   SYS   SYS   SYS   PHB   PHB   PIX   PIX   SYS   SYS   PHB   X     1\n"
      "\n"
      "Accelerators:\n";
  EXPECT_EQ(output.out.substr(0, expected.size()), expected);
  for (const char* line :
       {"  GPU0  0000:23:00.0  10de:20f1  nvidia  GPU-00000000-0000-0000-0000-000000000000\n",
        "  NIC0  0000:25:00.0  rail0   mlx5_0  leaf-a  100   4    0       4\n",
        "  NIC1  0000:2b:00.0  rail1   mlx5_1  -       -     0    0       0\n",
        "  PXB   several PCIe switches, no host bridge\n"}) {
    EXPECT_NE(output.out.find(line), std::string::npos) << line << "is not in\n" << output.out;
  }
}

TEST_F(TopologyCommandTest, PrintsJson) {
  MakeVirtualMachine(sysfs_);
  const ProcessOutput output = Run({"-o", "json"});
  EXPECT_EQ(output.status, 0) << output.err;
  const auto json = nlohmann::json::parse(output.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << output.out;
  EXPECT_EQ(json["nics"].size(), 2U);
  EXPECT_EQ(json["paths"][0]["path"], "PHB");
}

// RAILHEAD_WRITE_PICTURES=1 writes it.
TEST_F(TopologyCommandTest, TheNodeOfTheDocumentationsPicture) {
  const FakeMachine machine = MakePcieA100(sysfs_);
  nlohmann::json fabric = {{"version", 1}, {"rails", nlohmann::json::array()}};
  for (std::size_t i = 0; i < machine.nics.size(); ++i) {
    const std::string name = "rail" + std::to_string(i);
    fabric["rails"].push_back({{"name", name}, {"pf", name}, {"vlan", 100 + i}});
    sysfs_.AddVfs(machine.nics[i], 8);
  }
  sysfs_.Write("/etc/railhead/fabric.json", fabric.dump());
  sysfs_.Write("/etc/railhead/node-name", "gpu-001\n");
  const ProcessOutput output = Run({"-o", "json"});
  ASSERT_EQ(output.status, 0) << output.err;
  if (std::getenv("RAILHEAD_WRITE_PICTURES") != nullptr) std::ofstream(PICTURE) << output.out;
  std::ifstream file(PICTURE);
  const std::string drawn((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(drawn, output.out)
      << "write it again: RAILHEAD_WRITE_PICTURES=1 tests/one.sh unit.topology_view.command, then "
         "docs/pictures/draw.py";
}

TEST_F(TopologyCommandTest, AnEmptyNodeIsNoError) {
  const ProcessOutput output = Run({});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_NE(output.out.find("No accelerators."), std::string::npos) << output.out;
  EXPECT_NE(output.out.find("No network functions."), std::string::npos) << output.out;
}

TEST_F(TopologyCommandTest, WrongFilesAndWordsAreRefused) {
  MakeE810(sysfs_);
  EXPECT_EQ(Run({"--jsn"}).status, 2);
  sysfs_.Write("/etc/railhead/topology.json", R"({"accelerator": {}})");
  const ProcessOutput wrong = Run({});
  EXPECT_EQ(wrong.status, 3);
  EXPECT_EQ(wrong.out, "");
  EXPECT_NE(wrong.err.find("/etc/railhead/topology.json: /accelerator: unknown field"), std::string::npos)
      << wrong.err;
  EXPECT_NE(wrong.err.find("did you mean 'accelerators'?"), std::string::npos) << wrong.err;
  sysfs_.Remove("/etc/railhead/topology.json");
  sysfs_.Write("/etc/railhead/fabric.json", "{");
  EXPECT_EQ(Run({}).status, 3);
}

}  // namespace
}  // namespace railhead::testing

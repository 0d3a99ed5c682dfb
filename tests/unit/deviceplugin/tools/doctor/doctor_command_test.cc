// `railctl doctor` as a process.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/support/process.h"
#include "tests/unit/deviceplugin/tools/doctor/node.h"

namespace railhead::testing {
namespace {

class DoctorCommandTest : public ::testing::Test {
 protected:
  DoctorCommandTest() {
    MakeDoctorNode(sysfs_);
    // As on the first ADD: the VFs' tables have entries.
    for (const char* device : {"mlx5_0v0", "mlx5_1v0"}) {
      sysfs_.AddGid(device, 0, "fe80:0000:0000:0000:0000:0000:0000:0002", "IB/RoCE v1", "x");
      sysfs_.AddGid(device, 1, "fe80:0000:0000:0000:0000:0000:0000:0002", "RoCE v2", "x");
    }
  }
  [[nodiscard]] ProcessOutput Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {RAILCTL, "doctor"});
    return RunProcess(arguments, {{"RAILHEAD_ROOT", sysfs_.directory()}}, "");
  }
  [[nodiscard]] nlohmann::json RunJson(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"-o", "json"});
    return nlohmann::json::parse(Run(arguments).out, nullptr, false);
  }
  FakeSysfs sysfs_;
};

TEST_F(DoctorCommandTest, AGoodNode) {
  const ProcessOutput output = Run({});
  EXPECT_EQ(output.status, 0) << output.out;
  EXPECT_EQ(output.err, "");
  EXPECT_NE(output.out.find("39 checks: failure 0, warning 0,"), std::string::npos) << output.out;
  EXPECT_NE(output.out.find("ok       pci.acs"), std::string::npos) << output.out;
}

TEST_F(DoctorCommandTest, AFailureIsStatusOne) {
  sysfs_.Write("/sys/bus/pci/devices/0000:82:04.0/config", AcsConfig(0x1d));
  const ProcessOutput output = Run({});
  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(output.out.find("failure  pci.acs                 bridge 0000:82:04.0"), 0U) << output.out;
  EXPECT_EQ(Run({"--skip", "pci.acs"}).status, 0);
  EXPECT_EQ(Run({"--only", "pci", "net"}).status, 1);
}

TEST_F(DoctorCommandTest, WarningsCountWhenStrict) {
  sysfs_.Write("/var/lib/kubelet/device-plugins/sriov_net.sock", "");
  EXPECT_EQ(Run({}).status, 0);
  EXPECT_EQ(Run({"--strict"}).status, 1);
  EXPECT_EQ(Run({"--strict", "--skip", "runtime"}).status, 0);
}

TEST_F(DoctorCommandTest, Json) {
  const auto json = RunJson({});
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["node"], "node0");
  EXPECT_EQ(json["checks"].size(), 39U);
  EXPECT_TRUE(json["elapsedMs"].is_number_float());
  EXPECT_EQ(json["counts"]["failure"], 0);
  EXPECT_EQ(RunJson({"--only", "rdma.port"})["checks"].size(), 1U);
  EXPECT_EQ(RunJson({"--list"})["checks"].size(), 39U);
}

TEST_F(DoctorCommandTest, FilesThatOthersCanChange) {
  const auto open = [&](const std::string& path, mode_t mode) {
    ASSERT_EQ(::chmod((sysfs_.directory() + path).c_str(), mode), 0);
  };
  sysfs_.Write("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{}");
  EXPECT_EQ(RunJson({"--only", "node.files"})["checks"][0]["status"], "ok");
  open("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", 0660);
  const auto check = RunJson({"--only", "node.files"})["checks"][0];
  EXPECT_EQ(check["status"], "warning") << check;
  EXPECT_EQ(check["observations"].size(), 1U) << check;
  const std::string path = sysfs_.directory() + "/var/lib/kubelet/device-plugins";
  EXPECT_EQ(std::string(check["fix"]).find("chmod go-w " + path + "/kubelet_internal_checkpoint"), 0U)
      << check;
  open("/etc/railhead", 0777);
  const auto folder = RunJson({"--only", "node.files"})["checks"][0];
  EXPECT_EQ(folder["observations"].size(), 2U) << "the folder once: " << folder;
  EXPECT_NE(std::string(folder["found"]).find("(mode 0777)"), std::string::npos) << folder;
  EXPECT_NE(std::string(folder["found"]).find("(mode 0660)"), std::string::npos) << folder;
}

TEST_F(DoctorCommandTest, Lists) {
  const ProcessOutput output = Run({"--list"});
  EXPECT_EQ(output.status, 0);
  EXPECT_NE(output.out.find("rdma.port               the rails' RDMA ports are ACTIVE\n"), std::string::npos)
      << output.out;
}

TEST_F(DoctorCommandTest, WrongCommandLine) {
  const ProcessOutput output = Run({"--only", "pci.asc"});
  EXPECT_EQ(output.status, 2);
  EXPECT_EQ(output.err, "railctl: unknown check pci.asc\n  did you mean pci.acs?\n");
  EXPECT_EQ(Run({"--jsno"}).status, 2);
}

}  // namespace
}  // namespace railhead::testing

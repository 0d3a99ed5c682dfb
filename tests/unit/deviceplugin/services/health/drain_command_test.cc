// `railctl drain` and `railctl undrain` as processes, on a node with one rail.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cni/state/journal.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/state_file.h"
#include "netns/base/node.h"
#include "tests/support/process.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

class DrainCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "1111-2222\n");
    sysfs_.AddPf({.address = kPf, .netdev = "pf0"});
    sysfs_.AddVfs(kPf, 2);
    sysfs_.Write("/etc/railhead/fabric.json", R"({"version": 1, "rails": [
        {"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24", "nodeBlock": 26}]})");
  }
  ProcessOutput Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RAILCTL);
    return RunProcess(arguments, {{"RAILHEAD_ROOT", sysfs_.directory()}}, "");
  }
  std::vector<std::string> Drained() {
    std::vector<std::string> devices;
    const auto drains = health::ReadDrains(sysfs_.root());
    for (const health::Drain& drain : drains.value()) devices.push_back(drain.device);
    return devices;
  }
  // The device is in a pod, or between two.
  void Attach(const std::string& device, const std::map<std::string, std::string>& pod, bool reset = false) {
    JournalEntry entry;
    entry.key = reset ? ResetKey(device) : AttachmentKey{"rails", "c1", "net1"};
    entry.boot_id = *BootId(sysfs_.root());
    entry.phase = Phase::kDone;
    entry.cni_args = pod;
    AttachedDevice link;
    link.device = device;
    link.pf = kPf;
    entry.devices = {link};
    const auto written = Journal(sysfs_.root()).Write(entry);
    ASSERT_TRUE(written) << Describe(written.error());
  }
  // Writes the health state that railheadd would write. If `well` is false, the VF has a reason of its own.
  void Seen(bool well) {
    health::HealthState state;
    const health::HealthReason drained{health::HealthRule::kDrained, kPf, "", "PF pf0 is drained",
                                       At(10).wall};
    const health::HealthReason unbound{health::HealthRule::kUnbound, kVf, "", "VF is bound to no driver",
                                       At(10).wall};
    state.devices = {{kPf, false, kPf, "pf0", false, At(10).wall, {drained}},
                     {kVf, true, kPf, "pf0", false, At(10).wall, {drained}}};
    if (!well) state.devices[1].reasons.push_back(unbound);
    ASSERT_TRUE(health::kHealthFile.Write(sysfs_.root(), state));
  }
  FakeSysfs sysfs_;
};

TEST_F(DrainCommandTest, ARailAPfAndAVf) {
  auto output = Run({"drain", "rail0", "--reason", "cable swap"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(output.out, "rail0 (0000:43:00.0) is drained: no new pod gets it\n");
  EXPECT_EQ(Drained(), std::vector<std::string>{kPf});
  output = Run({"drain", "pf0"});
  EXPECT_EQ(output.status, 0);
  EXPECT_EQ(output.out, "pf0 (0000:43:00.0) was drained already\n");
  EXPECT_EQ(Run({"drain", kVf}).status, 0);
  EXPECT_EQ(Drained(), (std::vector<std::string>{kPf, kVf}));
  const auto list = nlohmann::json::parse(Run({"drain", "-o", "json"}).out);
  EXPECT_EQ(list["drains"][0]["name"], "rail0");
  EXPECT_EQ(list["drains"][0]["reason"], "cable swap");
  EXPECT_NE(Run({"drain"}).out.find("cable swap"), std::string::npos);
}

TEST_F(DrainCommandTest, SaysWhichPodsDevicesStay) {
  const auto inPods = [](const nlohmann::json& drain) { return drain.at("inPods"); };
  ASSERT_EQ(Run({"drain", "rail0"}).status, 0);
  const auto list = [&] { return nlohmann::json::parse(Run({"drain", "-o", "json"}).out)["drains"]; };
  EXPECT_EQ(inPods(list()[0]), nlohmann::json::array());
  // Of an attachment that cannot be read only the lock is left.
  sysfs_.Write(std::string("/run/railhead/locks/") + kVf2 + ".lock", "c1/rails@net1.json\n");
  Attach(kVf, {{"K8S_POD_NAMESPACE", "train"}, {"K8S_POD_NAME", "worker-0"}});
  const auto both = nlohmann::json::array({kVf, kVf2});
  const auto drained = nlohmann::json::parse(Run({"drain", "rail0", "-o", "json"}).out);
  EXPECT_EQ(inPods(drained), both);
  EXPECT_EQ(drained["pods"], nlohmann::json::array({"train/worker-0"}));
  EXPECT_EQ(Run({"drain", "rail0"}).out,
            std::string("rail0 (0000:43:00.0) was drained already; still in pods: ") + kVf + ", " + kVf2 +
                " (train/worker-0)\n");
  ASSERT_EQ(Run({"drain", kVf2}).status, 0);
  EXPECT_EQ(inPods(list()[0]), both);
  EXPECT_EQ(list()[0]["pods"], nlohmann::json::array({"train/worker-0"}));
  EXPECT_EQ(inPods(list()[1]), nlohmann::json::array({kVf2})) << "of a VF only its own";
  EXPECT_EQ(list()[1]["pods"], nlohmann::json::array());
  const auto text = Run({"drain"}).out;
  EXPECT_NE(text.find(" IN PODS"), std::string::npos) << text;
  EXPECT_NE(text.find(" train/worker-0\n"), std::string::npos) << text;
  // While a pod has it, a device may leave the host.
  sysfs_.Remove("/sys/bus/pci/devices/" + std::string(kVf));
  EXPECT_EQ(inPods(list()[0]), both);
}

TEST_F(DrainCommandTest, ADeviceBetweenTwoPodsIsInNone) {
  ASSERT_EQ(Run({"drain", "rail0"}).status, 0);
  Attach(kVf, {}, true);
  const auto list = nlohmann::json::parse(Run({"drain", "-o", "json"}).out)["drains"];
  EXPECT_EQ(list[0]["inPods"], nlohmann::json::array());
}

TEST_F(DrainCommandTest, WhatTheNodeDoesNotHave) {
  const auto output = Run({"drain", "rail7"});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("nothing on this node is called 'rail7'"), std::string::npos) << output.err;
  EXPECT_NE(output.err.find("did you mean rail0?"), std::string::npos) << output.err;
  EXPECT_EQ(Run({"undrain", "rail0"}).status, 1);
  EXPECT_TRUE(Drained().empty());
}

TEST_F(DrainCommandTest, UndrainsOnlyWhatIsHealthy) {
  ASSERT_EQ(Run({"drain", "rail0"}).status, 0);
  auto output = Run({"undrain", "rail0"});
  EXPECT_EQ(output.status, 1) << "its health is unknown";
  EXPECT_NE(output.err.find("--force"), std::string::npos) << output.err;
  Seen(false);
  output = Run({"undrain", "rail0"});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("unbound: VF is bound to no driver"), std::string::npos) << output.err;
  EXPECT_EQ(Drained().size(), 1U);
  Seen(true);
  output = Run({"undrain", "rail0"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(output.out, "rail0 (0000:43:00.0) is in use again\n");
  EXPECT_TRUE(Drained().empty());
}

TEST_F(DrainCommandTest, ForceUndrainsAll) {
  ASSERT_EQ(Run({"drain", "rail0"}).status, 0);
  const auto output = Run({"undrain", kPf, "--force", "-o", "json"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(nlohmann::json::parse(output.out)["device"], kPf);
  EXPECT_TRUE(Drained().empty());
}

}  // namespace
}  // namespace railhead::testing

// railheadd as a process, against kubelet's device manager.
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cni/state/allocation.h"
#include "netns/base/files.h"
#include "netns/base/unique_fd.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/support/kubelet/trace.h"

namespace railhead::testing {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

TEST_F(ProcessTest, HelpAndVersion) {
  const auto help = Run({"--help"});
  EXPECT_EQ(help->Wait(), 0);
  EXPECT_NE(help->out().find("--kubelet-dir"), std::string::npos);
  EXPECT_NE(help->out().find("Exit status"), std::string::npos);
  // Words, not what they are in memory.
  EXPECT_NE(help->out().find("--log-format TEXT:{json,text}=json"), std::string::npos) << help->out();
  EXPECT_EQ(help->out().find('\0'), std::string::npos);
  const auto version = Run({"--version"});
  EXPECT_EQ(version->Wait(), 0);
  EXPECT_EQ(version->out(), std::string("railheadd ") + RAILHEAD_VERSION + "\n");
}

TEST_F(ProcessTest, AWrongCommandLineIsStatus2) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--nonsense"},
                                                    {"--fabric", "relative.json"},
                                                    {"--fabric", "/a", "--config-file", "/b"},
                                                    {"--log-format", "xml"},
                                                    {"--log-level", "loud"}}) {
    const auto child = Run(arguments);
    EXPECT_EQ(child->Wait(), 2) << arguments[0];
    EXPECT_NE(child->err().find(arguments[0]), std::string::npos) << child->err();
  }
}

TEST_F(ProcessTest, AWrongConfigurationIsStatus3AndSaysWhere) {
  sysfs_.Write("/etc/railhead/fabric.json",
               R"({"version": 1, "rails": [{"name": "r", "pf": "pf0", "vlan": 4095}]})");
  const auto fabric = Run();
  EXPECT_EQ(fabric->Wait(), 3);
  EXPECT_NE(fabric->err().find("/rails/0/vlan"), std::string::npos) << fabric->err();
  const Json line = Json::parse(fabric->err());
  EXPECT_EQ(line["level"], "error");

  sysfs_.Write("/config.json",
               R"({"resourceList": [{"resourceName": "a", "selectors": {"pfName": ["pf0"]}}]})");
  const auto config = Run({"--config-file", "/config.json"});
  EXPECT_EQ(config->Wait(), 3);
  EXPECT_NE(config->err().find("pfNames"), std::string::npos) << config->err();

  sysfs_.Remove("/etc/railhead/fabric.json");
  const auto none = Run();
  EXPECT_EQ(none->Wait(), 3);
  EXPECT_NE(none->err().find("no such file"), std::string::npos) << none->err();
}

TEST_F(ProcessTest, ListsWhatItWouldAdvertise) {
  const auto child = Run({"--list"});
  ASSERT_EQ(child->Wait(), 0) << child->err();
  const Json json = Json::parse(child->out());
  EXPECT_EQ(json["resources"][0]["resource"], kResource);
  EXPECT_EQ(json["resources"][0]["devices"].size(), 8U);
  EXPECT_EQ(json["notAdvertised"][0]["because"], "is a PF with VFs");
}

TEST_F(ProcessTest, FindsTheConfigurationOfTheProgramItReplaces) {
  sysfs_.Remove("/etc/railhead/fabric.json");
  sysfs_.Write("/etc/pcidp/config.json",
               R"({"resourceList": [{"resourceName": "net", "selectors": {"pfNames": ["pf0"]}}]})");
  const auto child = Run({"--list", "--resource-prefix", "example.com"});
  ASSERT_EQ(child->Wait(), 0) << child->err();
  const Json json = Json::parse(child->out());
  EXPECT_EQ(json["resources"][0]["resource"], "example.com/net");
  EXPECT_EQ(json["resources"][0]["devices"].size(), 4U);
}

TEST_F(KubeletTest, TakesTheDaemonSetOfTheProgramItReplacesAsItIs) {
  sysfs_.Write(
      "/etc/pcidp/config.json",
      R"({"resourceList": [{"resourceName": "net", "selectors": {"pfNames": ["pf0"], "isRdma": true}}]})");
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = Run({"--log-dir=sriovdp", "--log-level=10", "-config-file=/etc/pcidp/config.json",
                           "-resource-prefix", "example.com", "-use-cdi", "--kubelet-dir", "/kubelet"});
  const auto devices = kubelet.Devices("example.com/net", 4, Soon());
  ASSERT_TRUE(devices) << Describe(devices.error()) << daemon->err();
  const auto seen = kubelet.Allocate("example.com/net", 1);
  ASSERT_TRUE(seen) << Describe(seen.error());
  EXPECT_EQ(seen->cdi_devices, std::vector<std::string>{"example.com/net-pci=" + seen->ids[0]});
  EXPECT_TRUE(seen->devices.empty());
  EXPECT_TRUE(Exists(root_.Path("/run/cdi/railheadd-") + seen->ids[0] + ".json"));
  EXPECT_TRUE(Logs(*daemon, "--log-dir=sriovdp")) << "what is ignored is said";
}

// From the first list on: the list of drained devices is not known.
TEST_F(KubeletTest, GivesOutNothingWhileItCannotReadWhatIsDrained) {
  const std::string path = "/var/lib/railhead/drains.json";
  sysfs_.Write(path, "{");
  std::atomic<int> healthy{0};
  KubeletOptions options;
  options.record = [&](const TraceEvent& event) {
    if (event.from != "plugin" || event.call != "ListAndWatch") return;
    for (const auto& device : *Field(event.response, "devices"))
      healthy += device.value("health", "") == "Healthy";
  };
  DeviceManager kubelet(directory_, options);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon();
  ASSERT_TRUE(Logs(*daemon, "the list of drained devices is not known"));
  ASSERT_TRUE(Eventually([&] { return kubelet.Lists(kResource) > 0; })) << daemon->err();
  EXPECT_EQ(healthy, 0);
  EXPECT_EQ(kubelet.Present(kResource).size(), 8U);
  sysfs_.Remove(path);
  EXPECT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
}

TEST_F(KubeletTest, RegistersServesAndEndsCleanly) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon();
  const auto devices = kubelet.Devices(kResource, 8, Soon());
  ASSERT_TRUE(devices) << Describe(devices.error()) << daemon->err();
  EXPECT_EQ(devices->size(), 8U);
  EXPECT_EQ((*devices)[0].numa_nodes, std::vector<int>{0});
  EXPECT_EQ((*devices)[7].numa_nodes, std::vector<int>{1});

  // One on each rail, by preferred allocation. The ids were passed in random order.
  for (std::size_t n = 0; n < vfs0_.size(); ++n) {
    const auto seen = kubelet.Allocate(kResource, 2);
    ASSERT_TRUE(seen) << Describe(seen.error());
    EXPECT_EQ(seen->ids, (std::vector<std::string>{vfs0_[n], vfs1_[n]}));
    EXPECT_EQ(seen->cdi_devices,
              (std::vector<std::string>{"railhead.io/nic=" + vfs0_[n], "railhead.io/nic=" + vfs1_[n]}));
    EXPECT_EQ(seen->envs.at("PCIDEVICE_RAILHEAD_IO_ROCE"), vfs0_[n] + "," + vfs1_[n]);
    EXPECT_TRUE(ReadAllocation(root_, vfs1_[n]).value()) << "the record is there when Allocate has answered";
  }
  const auto refused = kubelet.PreStart(kResource, {vfs0_[0], vfs1_[0]});
  ASSERT_FALSE(refused) << "no attachment: the gate must be shut";
  EXPECT_NE(refused.error().message.find("FAILED_PRECONDITION"), std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("k8s.v1.cni.cncf.io/networks"), std::string::npos);

  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
  EXPECT_EQ(OurSockets(), 0U);
  EXPECT_TRUE(Eventually([&] { return !kubelet.Devices(kResource, 1, Clock::now()); }))
      << "the stream has not ended";
  EXPECT_EQ(kubelet.Registrations(kResource), 1);
}

TEST_F(KubeletTest, ADirectoryTooLongForSocketsIsSaidAtTheStart) {
  const std::string deep = "/" + std::string(100, 'd');
  ASSERT_TRUE(MakeDirectories(root_.Path(deep)));
  const auto daemon = Run({"--kubelet-dir", deep});
  EXPECT_EQ(daemon->Wait(), 1);
  EXPECT_NE(daemon->err().find("107 bytes"), std::string::npos) << daemon->err();
}

TEST_F(KubeletTest, WaitsForAKubeletThatComesLater) {
  const auto daemon = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return OurSockets() == 1; })) << daemon->err();
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  EXPECT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  EXPECT_EQ(daemon->Stop(), 0);
}

TEST_F(KubeletTest, RegistersAgainAfterEveryRestartOfKubelet) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon();
  for (int restart = 0; restart < 4; ++restart) {
    ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << "after restart " << restart << daemon->err();
    kubelet.Stop();
    ASSERT_TRUE(kubelet.Start());
  }
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  EXPECT_EQ(OurSockets(), 1U);
  EXPECT_TRUE(kubelet.Allocate(kResource, 2));
  EXPECT_EQ(daemon->Stop(), 0);
}

TEST_F(KubeletTest, RegistersAgainWhenItsSocketIsRemoved) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon();
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon()));
  const auto names = ListDirectory(directory_).value().value_or(std::vector<std::string>{});
  for (const std::string& name : names) {
    if (name.rfind("railhead-", 0) == 0) {
      ASSERT_TRUE(RemoveFile(directory_ + "/" + name));
    }
  }
  ASSERT_TRUE(Eventually([&] { return kubelet.Registrations(kResource) >= 2; })) << daemon->err();
  EXPECT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  EXPECT_EQ(daemon->Stop(), 0);
}

TEST_F(KubeletTest, ASecondInstanceTakesOverAndTheFirstStandsBy) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto old_daemon = RunDaemon();
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon()));
  const auto new_daemon = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return kubelet.Registrations(kResource) >= 2; })) << new_daemon->err();
  ASSERT_TRUE(Logs(*old_daemon, "standby: a newer"));
  EXPECT_EQ(old_daemon->Stop(), 0);
  // kubelet drops the new one, too, when the old one's stream ends.
  ASSERT_TRUE(Eventually([&] { return !kubelet.OnlyServer(kResource).empty(); })) << new_daemon->err();
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << new_daemon->err();
  EXPECT_EQ(OurSockets(), 1U) << "the old one removed the new one's socket";
  EXPECT_TRUE(kubelet.Allocate(kResource, 1));
  // One each, one when the old one has left, and one whenever kubelet has dropped the new one for it.
  const int registrations = kubelet.Registrations(kResource);
  EXPECT_LE(registrations, 3 + kubelet.Drops(kResource)) << new_daemon->err();
  EXPECT_EQ(new_daemon->Stop(), 0);
}

TEST_F(KubeletTest, TheFirstInstanceTakesOverWhenTheSecondIsKilled) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto old_daemon = RunDaemon();
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon()));
  const auto new_daemon = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return kubelet.Registrations(kResource) >= 2; })) << new_daemon->err();
  ASSERT_TRUE(Logs(*old_daemon, "standby: a newer"));
  new_daemon->Kill();
  ASSERT_TRUE(Eventually([&] { return kubelet.Registrations(kResource) >= 3; })) << old_daemon->err();
  EXPECT_TRUE(kubelet.Devices(kResource, 8, Soon())) << old_daemon->err();
  EXPECT_EQ(old_daemon->Stop(), 0);
}

TEST_F(KubeletTest, RemovesSocketsThatAKilledProcessLeftBehind) {
  const auto killed = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return OurSockets() == 1; })) << killed->err();
  killed->Kill();
  ASSERT_EQ(OurSockets(), 1U);
  const auto daemon = RunDaemon();
  EXPECT_TRUE(Logs(*daemon, "removed a stale socket"));
  EXPECT_TRUE(Eventually([&] { return OurSockets() == 1; }));
  EXPECT_EQ(daemon->Stop(), 0);
}

TEST_F(KubeletTest, EndsAtOnceWhileKubeletHangsInRegister) {
  // A socket that accepts and never answers.
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = directory_ + "/kubelet.sock";
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  const auto daemon = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return OurSockets() == 1; })) << daemon->err();
  const UniqueFd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted.valid());
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

TEST_F(KubeletTest, ServesTheStandInsCommands) {
  const std::string standin = KUBELET_STANDIN;
  const auto ask = [&](std::vector<std::string> arguments, std::string* text = nullptr) {
    arguments.insert(arguments.begin(), standin);
    const auto child = StartOn("", arguments);
    const int status = child->Wait();
    if (text != nullptr) *text = status == 0 ? child->out() : child->err();
    return status;
  };
  const auto kubelet = StartOn("", {standin, "serve", "--dir", directory_});
  ASSERT_TRUE(Eventually([&] { return Exists(directory_ + "/control.sock"); })) << kubelet->err();
  const auto daemon = RunDaemon();
  std::string text;
  ASSERT_EQ(ask({"devices", "--dir", directory_, kResource, "--wait", "8", "--timeout", "60"}, &text), 0)
      << text;
  EXPECT_EQ(Json::parse(text)[0],
            Json::parse(R"({"id": ")" + vfs0_[0] + R"(", "health": "Healthy", "numa": 0})"));
  ASSERT_EQ(ask({"allocate", "--dir", directory_, kResource, "2"}, &text), 0) << text;
  EXPECT_EQ(Json::parse(text)["devices"], Json({vfs0_[0], vfs1_[0]}));
  EXPECT_EQ(Json::parse(text)["response"]["envs"]["PCIDEVICE_RAILHEAD_IO_ROCE"], vfs0_[0] + "," + vfs1_[0]);
  EXPECT_EQ(ask({"prestart", "--dir", directory_, kResource, vfs0_[0], vfs1_[0]}, &text), 1);
  EXPECT_NE(text.find("FAILED_PRECONDITION"), std::string::npos) << text;
  ASSERT_EQ(ask({"restart", "--dir", directory_}, &text), 0) << text;
  ASSERT_EQ(ask({"devices", "--dir", directory_, kResource, "--wait", "8", "--timeout", "60"}, &text), 0)
      << text;
  ASSERT_EQ(ask({"allocate", "--dir", directory_, kResource, "2"}, &text), 0) << text;
  EXPECT_EQ(Json::parse(text)["devices"], Json({vfs0_[1], vfs1_[1]})) << "a restart must keep allocations";
  EXPECT_EQ(ask({"allocate", "--dir", directory_, kResource, "5"}, &text), 1);
  EXPECT_EQ(ask({"release", "--dir", directory_, kResource, vfs0_[0], vfs1_[0]}), 0);
  EXPECT_EQ(
      ask({"devices", "--dir", directory_, "railhead.io/other", "--wait", "1", "--timeout", "0.1"}, &text),
      1);
  EXPECT_EQ(ask({"allocate", "--dir", directory_, "railhead.io/other", "1"}, &text), 1);
  EXPECT_EQ(daemon->Stop(), 0);
  EXPECT_EQ(kubelet->Stop(), 0);
}

}  // namespace
}  // namespace railhead::testing

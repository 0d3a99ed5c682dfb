// railheadd while it makes VFs at its start: probes, the service manager, SIGTERM.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cni/attachment/device_locks.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/metrics/http_client.h"
#include "tests/support/metrics/notify_socket.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* kPf2 = "0000:c3:00.0";

// A third rail's PF has no VFs and shall have two. The test holds its lock, so provisioning lasts as long as
// the test wants.
class StartingTest : public KubeletTest {
 protected:
  void SetUp() override {
    sysfs_.AddPf({.address = kPf2, .netdev = "", .total_vfs = 8});
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "11111111-2222\n");
    sysfs_.Write("/etc/railhead/fabric.json", R"({"version": 1, "rails": [
      {"name": "rail0", "pf": "pf0"}, {"name": "rail1", "pf": "pf1"}, {"name": "rail2", "pf": "0000:c3:00.0"}],
      "provision": {"rails": {"rail2": {"vfs": 2}}}})");
    auto lock = attachment::DeviceLocks::Acquire(root_, {kPf2}, std::chrono::seconds(0));
    ASSERT_TRUE(lock) << Describe(lock.error());
    lock_ = std::move(*lock);
  }

  std::unique_ptr<Process> RunService() {
    return StartOn(sysfs_.directory(),
                   {RAILHEADD, "--kubelet-dir", "/kubelet", "--http-address", "127.0.0.1:0"},
                   {"NOTIFY_SOCKET=" + socket_});
  }

  // Every address at which the daemon has logged that it listens.
  static std::vector<std::string> Addresses(const Process& daemon) {
    std::vector<std::string> addresses;
    for (const std::string& line : Split(daemon.err(), '\n')) {
      const Json json = Json::parse(line, nullptr, false);
      if (json.is_object() && json.value("msg", "") == "serving metrics and probes")
        addresses.push_back(json["address"]);
    }
    return addresses;
  }
  static std::string AddressOf(const Process& daemon) {
    EXPECT_TRUE(Eventually([&] { return !Addresses(daemon).empty(); })) << daemon.err();
    const auto addresses = Addresses(daemon);
    return addresses.empty() ? "" : addresses.front();
  }
  static bool Answers(const std::string& address, const std::string& path, int status) {
    return Eventually([&] {
      const auto answer = Get(address, path);
      return answer && answer->status == status;
    });
  }

  const std::string socket_ = sysfs_.directory() + "/notify";
  const std::string doing_ = std::string("provisioning PF ") + kPf2;
  NotifySocket manager_{socket_};
  std::optional<attachment::DeviceLocks> lock_;
};

TEST_F(StartingTest, ProbesHearWhatItDoes) {
  const auto daemon = RunService();
  const std::string address = AddressOf(*daemon);
  EXPECT_TRUE(Eventually([&] {
    const auto ready = Get(address, "/readyz");
    return ready && ready->status == 503 && Json::parse(ready->body)["missing"][0]["because"] == doing_;
  })) << Get(address, "/readyz")->body;
  const auto health = Get(address, "/healthz");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 200);
  EXPECT_EQ(Json::parse(health->body)["status"], "alive");
  EXPECT_EQ(Get(address, "/metrics")->status, 503);
  EXPECT_EQ(Get(address, "/")->status, 404);
  lock_.reset();
  // The fake kernel makes no VFs, and the daemon reports that. Then it serves the existing devices at the
  // same address.
  EXPECT_TRUE(Answers(address, "/metrics", 200)) << daemon->err();
  EXPECT_TRUE(Logs(*daemon, "made 0 VFs instead of 2"));
  EXPECT_TRUE(Eventually([&] {
    const auto ready = Get(address, "/readyz");
    return ready && ready->body.find("provisioning") == std::string::npos;
  })) << "readiness follows the first reading, which the metrics show already";
  EXPECT_EQ(daemon->Stop(), 0);
  EXPECT_EQ(Addresses(*daemon).size(), 1U) << daemon->err();
}

TEST_F(StartingTest, TheServiceManagerHearsItAndGivesMoreTime) {
  const auto daemon = RunService();
  for (int times = 0; times < 2; ++times) {
    const auto message = manager_.Await("STATUS=Not ready: " + doing_);
    ASSERT_EQ(message.size(), 2U) << daemon->err();
    EXPECT_EQ(message[0].rfind("EXTEND_TIMEOUT_USEC=", 0), 0U) << message[0];
    EXPECT_GE(ParseInt(message[0].substr(20)).value_or(0), 30'000'000) << "more than until the next word";
  }
  lock_.reset();
  EXPECT_FALSE(manager_.Await("READY=1").empty()) << daemon->err();
  EXPECT_EQ(daemon->Stop(), 0);
}

TEST_F(StartingTest, SighupDoesNotEndIt) {
  const auto daemon = RunService();
  (void)AddressOf(*daemon);
  daemon->Signal(SIGHUP);
  lock_.reset();
  EXPECT_FALSE(manager_.Await("READY=1").empty()) << daemon->err();
  EXPECT_EQ(daemon->Stop(), 0);
}

TEST_F(StartingTest, SigtermEndsItBeforeThePfIsTouched) {
  const auto daemon = RunService();
  ASSERT_FALSE(manager_.Await("STATUS=Not ready: " + doing_).empty()) << daemon->err();
  daemon->Signal(SIGTERM);
  EXPECT_FALSE(manager_.Await("STOPPING=1").empty()) << daemon->err();
  EXPECT_EQ(daemon->Wait(), 0) << daemon->err();
  EXPECT_NE(daemon->err().find("\"signal\":\"TERM\""), std::string::npos) << daemon->err();
  EXPECT_EQ(ReadAttribute(root_.Path("/sys/bus/pci/devices/") + kPf2 + "/sriov_numvfs").value(), "0");
  EXPECT_FALSE(Exists(root_.Path("/run/railhead/provision/") + kPf2));
  EXPECT_EQ(OurSockets(), 0U);
}

// railheadd has nothing long to do, so kubelet does not wait for any of this.
TEST_F(StartingTest, AStartWithNothingToDoTellsNothing) {
  sysfs_.Write("/etc/railhead/fabric.json", R"({"version": 1, "rails": [
      {"name": "rail0", "pf": "pf0"}, {"name": "rail1", "pf": "pf1"}], "provision": {"vfs": 4}})");
  const auto daemon = RunService();
  for (auto message = manager_.Next(); !message.empty(); message = manager_.Next()) {
    EXPECT_EQ(message[0].rfind("EXTEND_TIMEOUT_USEC=", 0), std::string::npos) << message[0];
    if (message[0] == "READY=1") break;
  }
  EXPECT_EQ(daemon->Stop(), 0);
}

// In a cluster whose fabric is not described yet.
class NoFabricTest : public StartingTest {
 protected:
  void SetUp() override {
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "11111111-2222\n");
    ASSERT_TRUE(RemoveFile(root_.Path("/etc/railhead/fabric.json")));
    daemon_ = StartOn(sysfs_.directory(), {RAILHEADD, "--kubelet-dir", "/kubelet", "--http-address",
                                           "127.0.0.1:0", "--follow-config", "/config"});
    address_ = AddressOf(*daemon_);
  }
  // Why it is not ready.
  bool WaitsBecause(const std::string& why) {
    return Eventually([&] {
      const auto ready = Get(address_, "/readyz");
      return ready && ready->status == 503 && ready->body.find(why) != std::string::npos;
    });
  }

  std::unique_ptr<Process> daemon_;
  std::string address_;
};

TEST_F(NoFabricTest, ItWaitsAliveAndTakesTheFirstValidOne) {
  EXPECT_TRUE(WaitsBecause("waiting for a fabric: no such file: ")) << daemon_->err();
  EXPECT_EQ(Get(address_, "/healthz")->status, 200);
  EXPECT_TRUE(Logs(*daemon_, "the node has no fabric"));
  const std::string rails = R"({"version": 1, "rails": [{"name": "rail0", "pf": "pf0", "vlan": )";
  sysfs_.Write("/config/fabric.json", rails + "9999}]}");
  EXPECT_TRUE(WaitsBecause("/rails/0/vlan")) << daemon_->err();
  EXPECT_EQ(Get(address_, "/healthz")->status, 200);
  sysfs_.Write("/config/fabric.json", rails + "7}]}");
  EXPECT_TRUE(Answers(address_, "/metrics", 200)) << daemon_->err();
  EXPECT_TRUE(Exists(root_.Path("/etc/railhead/fabric.json")));
  EXPECT_EQ(daemon_->Stop(), 0);
  EXPECT_EQ(Addresses(*daemon_).size(), 1U) << daemon_->err();
}

TEST_F(NoFabricTest, SigtermEndsTheWait) {
  EXPECT_TRUE(WaitsBecause("waiting for a fabric")) << daemon_->err();
  EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
}

}  // namespace
}  // namespace railhead::testing

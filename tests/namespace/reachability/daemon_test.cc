// railheadd as a process that probes real links. Where health's rule "unreachable" is on, kubelet gives new
// pods no VF of a rail that reaches nothing. The other rails are not affected.
#include <gtest/gtest.h>

#include <atomic>

#include "deviceplugin/services/address_leasing/leasing_service.h"
#include "tests/namespace/reachability/fake_switch.h"
#include "tests/support/cluster_store/etcd_cluster.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/support/process.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

class ReachabilityDaemonTest : public KubeletTest {
 protected:
  ReachabilityDaemonTest() {
    for (const char* pf : {"pf0", "pf1"})
      sysfs_.Write(std::string("/sys/class/net/") + pf + "/carrier", "1\n");
    switch_.Own([this](int, int, const IpAddress& address) {
      return (answers_ && address == IpAddress::Parse("10.100.0.254")) ||
             address == IpAddress::Parse("10.200.0.254");
    });
  }
  // `more`: further fields of the fabric.
  void SetFabric(const std::string& unreachable, const std::string& more = "") {
    sysfs_.Write("/etc/railhead/fabric.json", R"({"version": 1, )" + more +
                                                  R"("reachability": {"intervalSeconds": 1},
      "health": {"intervalSeconds": 1, "vfSeconds": 1, "unreachable": )" +
                                                  unreachable + R"(}, "rails": [
      {"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24", "gateway": "10.100.0.254"},
      {"name": "rail1", "pf": "pf1", "subnet": "10.200.0.0/24", "gateway": "10.200.0.254"}]})");
  }
  // The number of healthy devices that kubelet sees.
  std::size_t Healthy() {
    const auto devices = kubelet_.Devices(kResource, 1, Soon());
    if (!devices) return 0;
    return static_cast<std::size_t>(
        std::count_if(devices->begin(), devices->end(), [](const SeenDevice& one) { return one.healthy; }));
  }
  [[nodiscard]] ProcessOutput Railctl(const std::vector<std::string>& words) const {
    std::vector<std::string> command = {RAILCTL};
    command.insert(command.end(), words.begin(), words.end());
    return RunProcess(command, {{"RAILHEAD_ROOT", sysfs_.directory()}}, "");
  }

  Wires wires_{2};
  std::atomic<bool> answers_{true};  // the gateway of rail0
  FakeSwitch switch_{wires_, 2};
  DeviceManager kubelet_{directory_};
};

TEST_F(ReachabilityDaemonTest, ARailThatReachesNothingIsNotGivenToNewPods) {
  SetFabric(R"({"enabled": true, "upAfter": 3})");
  ASSERT_TRUE(kubelet_.Start());
  const auto daemon = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return Healthy() == 8; })) << daemon->err();
  ASSERT_TRUE(Eventually([&] { return Railctl({"reachability"}).status == 0; }))
      << Railctl({"reachability"}).out;

  answers_ = false;
  ASSERT_TRUE(Eventually([&] { return Healthy() == 4; })) << daemon->err();
  const ProcessOutput health = Railctl({"health"});
  EXPECT_EQ(health.status, 1);
  EXPECT_NE(
      health.out.find("the rail of PF pf0 (0000:43:00.0) reaches nothing: gateway 10.100.0.254 does not"),
      std::string::npos)
      << health.out;
  EXPECT_EQ(Railctl({"health", kPf1}).status, 0);
  EXPECT_NE(Railctl({"health", "--recording"}).out.find(R"("rail":{"state":"dead")"), std::string::npos);

  answers_ = true;
  EXPECT_TRUE(Eventually([&] { return Healthy() == 8; })) << daemon->err();
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

TEST_F(ReachabilityDaemonTest, ByDefaultItIsOnlyReported) {
  SetFabric("{}");
  answers_ = false;
  ASSERT_TRUE(kubelet_.Start());
  const auto daemon = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return daemon->err().find("a rail reaches nothing") != std::string::npos; }))
      << daemon->err();
  // Waits for a health check that has seen the dead rail: its recording says so.
  ASSERT_TRUE(Eventually([&] {
    return Railctl({"health", "--recording"}).out.find(R"("rail":{"state":"dead")") != std::string::npos;
  })) << Railctl({"health", "--recording"}).out;
  EXPECT_EQ(Healthy(), 8U);
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

// With a cluster store, probe results may take only `maxUnavailable` nodes out of use at once.
class BudgetDaemonTest : public ReachabilityDaemonTest {
 protected:
  BudgetDaemonTest() {
    const auto endpoint = etcd_.Config().endpoints.front();
    SetFabric(
        R"({"enabled": true, "upAfter": 3})",
        R"("nodeStatus": {"maxUnavailable": 1}, "addresses": {"store": {"type": "etcd", "renewSeconds": 1,
                "etcd": {"endpoints": ["http://)" +
            endpoint.host + ":" + endpoint.port + R"("]}}},)");
    sysfs_.Write("/etc/railhead/node-name", "node0\n");
    auto store = address_leasing::MakeClusterStore(
        sysfs_.root(), "etcd", R"({"endpoints": ["http://)" + endpoint.host + ":" + endpoint.port + R"("]})",
        "test", {});
    EXPECT_TRUE(store) << Describe(store.error());
    if (store) store_ = *std::move(store);
  }
  [[nodiscard]] std::vector<ipam::LeaseEntry> Places() const {
    return store_->Blocks("0.0.0.0/32", 0, 10).value_or(std::vector<ipam::LeaseEntry>{});
  }

  const int loopback_ = RunProcess({"/sbin/ip", "link", "set", "lo", "up"}, {}, "").status;  // for etcd
  TempRoot files_;
  EtcdCluster etcd_{files_.directory(), {}};
  std::unique_ptr<ipam::ClusterStore> store_;
};

TEST_F(BudgetDaemonTest, ABadRailStaysInUseUntilTheNodeHasAPlaceInTheBudget) {
  ASSERT_TRUE(store_->Create(ipam::LeaseKey::Node("other"), "{}"));
  const auto place = store_->Create(ipam::LeaseKey::Block("0.0.0.0/32", 0), R"({"node": "other"})");
  ASSERT_TRUE(place) << Describe(place.error());
  ASSERT_TRUE(kubelet_.Start());
  auto daemon = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return Healthy() == 8; })) << daemon->err();
  answers_ = false;
  ASSERT_TRUE(Eventually([&] {
    return daemon->err().find("unhealthy rails stay in use") != std::string::npos;
  })) << daemon->err();
  EXPECT_NE(Railctl({"reachability"}).status, 0) << "people are told all the same";
  EXPECT_EQ(Healthy(), 8U);

  ASSERT_TRUE(store_->Remove(*place));
  ASSERT_TRUE(Eventually([&] { return Healthy() == 4; })) << daemon->err();
  ASSERT_EQ(Places().size(), 1U);
  EXPECT_NE(Places().front().value.find("node0"), std::string::npos);

  // The next process takes over the node's place in the budget, and returns it.
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
  daemon = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return daemon->err().find("has a place") != std::string::npos; }))
      << daemon->err();
  EXPECT_EQ(Healthy(), 4U);
  answers_ = true;
  EXPECT_TRUE(Eventually([&] { return Healthy() == 8; })) << daemon->err();
  EXPECT_TRUE(Eventually([&] { return Places().empty(); })) << daemon->err();
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

}  // namespace
}  // namespace railhead::testing

// railheadd as a process that probes real links. The cluster sees a rail that reaches nothing. kubelet goes
// on giving its VFs to pods: what comes over the network takes nothing out of use.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>

#include "deviceplugin/services/node_status/rails_taint.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "tests/namespace/reachability/fake_switch.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/support/kubernetes/kube_server.h"
#include "tests/support/process.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

class ReachabilityDaemonTest : public KubeletTest {
 protected:
  ReachabilityDaemonTest() {
    (void)std::signal(SIGPIPE, SIG_IGN);
    server_.Admin("POST", "/api/v1/nodes", R"({"metadata": {"name": "gpu-001"}, "spec": {}, "status": {}})");
    sysfs_.Write("/etc/railhead/node-name", "gpu-001\n");
    // As a pod has them; paths are below the root.
    const KubeAccess access = server_.Access();
    const std::string account = "/var/run/secrets/kubernetes.io/serviceaccount/";
    sysfs_.Write(account + "ca.crt", ReadFileAt(access.tls.authorities.file));
    sysfs_.Write(account + "token", ReadFileAt(access.token_file));
    environment_ = {"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=" + access.endpoint.port};
    for (const char* pf : {"pf0", "pf1"})
      sysfs_.Write(std::string("/sys/class/net/") + pf + "/carrier", "1\n");
    switch_.Own([this](int, int, const IpAddress& address) {
      return (answers_ && address == IpAddress::Parse("10.100.0.254")) ||
             address == IpAddress::Parse("10.200.0.254");
    });
  }
  void SetFabric() {
    sysfs_.Write("/etc/railhead/fabric.json", R"({"version": 1, "reachability": {"intervalSeconds": 1},
      "health": {"intervalSeconds": 1, "vfSeconds": 1},
      "nodeStatus": {"nodeCondition": true, "taint": true, "events": true}, "rails": [
      {"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24", "gateway": "10.100.0.254"},
      {"name": "rail1", "pf": "pf1", "subnet": "10.200.0.0/24", "gateway": "10.200.0.254"}]})");
  }
  Json Node() { return Json::parse(server_.Admin("GET", "/api/v1/nodes/gpu-001").body); }
  Json Condition() {
    for (const Json& condition : Node()["status"].value("conditions", Json::array()))
      if (condition["type"] == "RailsReady") return condition;
    return {{"reason", ""}};
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

  const int loopback_ = RunProcess({"/sbin/ip", "link", "set", "lo", "up"}, {}, "").status;  // for the API
  KubeServer server_{KubeServer::Kind::kStandIn};
  Wires wires_{2};
  std::atomic<bool> answers_{true};  // the gateway of rail0
  FakeSwitch switch_{wires_, 2};
  DeviceManager kubelet_{directory_};
};

TEST_F(ReachabilityDaemonTest, ARailThatReachesNothingIsReportedAndStaysInUse) {
  SetFabric();
  ASSERT_TRUE(kubelet_.Start());
  const auto daemon = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return Healthy() == 8; })) << daemon->err();
  ASSERT_TRUE(Eventually([&] { return Railctl({"reachability"}).status == 0; }))
      << Railctl({"reachability"}).out;
  ASSERT_TRUE(Eventually([&] { return Condition()["reason"] == "AllRailsHealthy"; })) << daemon->err();

  answers_ = false;
  ASSERT_TRUE(Eventually([&] { return Condition()["reason"] == "RailsUnreachable"; })) << daemon->err();
  const auto message = Condition()["message"].get<std::string>();
  EXPECT_NE(message.find("rail0: probes reach nothing: gateway 10.100.0.254 does not"), std::string::npos)
      << message;
  ASSERT_TRUE(Eventually([&] {
    return server_.Admin("GET", "/api/v1/events").body.find("RailUnreachable") != std::string::npos;
  })) << daemon->err();
  EXPECT_NE(Railctl({"reachability"}).status, 0);
  EXPECT_EQ(Healthy(), 8U);
  EXPECT_EQ(Railctl({"health"}).status, 0);
  EXPECT_FALSE(node_status::HasRailsTaint(Node()["spec"].value("taints", Json())));
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

}  // namespace
}  // namespace railhead::testing

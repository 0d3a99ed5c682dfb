// railheadd on a fake node, with the stand-in for the Kubernetes API. The cluster sees a drained rail, and no
// longer sees it after its undrain.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/node_status/rails_taint.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/support/kubernetes/kube_server.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

class NodeStatusDaemonTest : public KubeletTest {
 protected:
  NodeStatusDaemonTest() {
    (void)std::signal(SIGPIPE, SIG_IGN);
    server_.Admin("POST", "/api/v1/nodes", R"({"metadata": {"name": "gpu-001"}, "spec": {}, "status": {}})");
    sysfs_.Write("/etc/railhead/node-name", "gpu-001\n");
    // As a pod has them; paths are below the root.
    const KubeAccess access = server_.Access();
    const std::string account = "/var/run/secrets/kubernetes.io/serviceaccount/";
    sysfs_.Write(account + "ca.crt", ReadFileAt(access.tls.authorities.file));
    sysfs_.Write(account + "token", ReadFileAt(access.token_file));
    environment_ = {"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=" + access.endpoint.port};
  }
  void SetFabric(const std::string& node_status) {
    sysfs_.Write("/etc/railhead/fabric.json", TwoRailFabric(R"(, "nodeStatus": )" + node_status));
  }
  Json Node() { return Json::parse(server_.Admin("GET", "/api/v1/nodes/gpu-001").body); }
  std::string ConditionReason() {
    for (const Json& condition : Node()["status"].value("conditions", Json::array()))
      if (condition["type"] == "RailsReady") return condition["reason"];
    return "";
  }

  KubeServer server_{KubeServer::Kind::kStandIn};
  DeviceManager kubelet_{directory_};
};

TEST_F(NodeStatusDaemonTest, ADrainedRailIsSeenInTheCluster) {
  SetFabric(R"({"nodeCondition": true, "taint": true, "events": true})");
  ASSERT_TRUE(kubelet_.Start());
  const auto daemon = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return ConditionReason() == "AllRailsHealthy"; })) << daemon->err();
  EXPECT_FALSE(node_status::HasRailsTaint(Node()["spec"].value("taints", Json())));
  ASSERT_TRUE(health::AddDrain(root_, {kPf0, "rail0", "cable", std::chrono::system_clock::now()}));
  ASSERT_TRUE(Eventually([&] { return ConditionReason() == "RailsDrained"; })) << daemon->err();
  EXPECT_TRUE(node_status::HasRailsTaint(Node()["spec"].value("taints", Json())));
  ASSERT_TRUE(Eventually([&] {
    return server_.Admin("GET", "/api/v1/events").body.find("is drained: cable") != std::string::npos;
  })) << daemon->err();
  ASSERT_TRUE(health::RemoveDrain(root_, kPf0));
  ASSERT_TRUE(Eventually([&] { return ConditionReason() == "AllRailsHealthy"; })) << daemon->err();
  EXPECT_FALSE(node_status::HasRailsTaint(Node()["spec"].value("taints", Json())));
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

// The settings are switched on, changed, and switched off while railheadd runs. No taint stays behind.
TEST_F(NodeStatusDaemonTest, FollowsTheFabric) {
  SetFabric("{}");
  ASSERT_TRUE(kubelet_.Start());
  const auto daemon = RunDaemon();
  ASSERT_TRUE(kubelet_.Devices(kResource, 8, Soon())) << daemon->err();
  ASSERT_TRUE(health::AddDrain(root_, {kPf0, "rail0", "cable", std::chrono::system_clock::now()}));
  SetFabric(R"({"nodeCondition": true})");
  ASSERT_TRUE(Eventually([&] { return ConditionReason() == "RailsDrained"; })) << daemon->err();
  EXPECT_FALSE(node_status::HasRailsTaint(Node()["spec"].value("taints", Json())));
  SetFabric(R"({"nodeCondition": true, "taint": true})");
  const auto is_tainted = [&] { return node_status::HasRailsTaint(Node()["spec"].value("taints", Json())); };
  ASSERT_TRUE(Eventually(is_tainted)) << daemon->err();
  SetFabric(R"({"taint": {"whenRailsBelow": 3}})");
  ASSERT_TRUE(Logs(*daemon, "has only 2 rails"));
  EXPECT_TRUE(is_tainted()) << "what is wrong changes nothing";
  SetFabric("{}");
  ASSERT_TRUE(Eventually([&] { return !is_tainted(); })) << daemon->err();
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

TEST_F(NodeStatusDaemonTest, WithoutTheApiKubeletIsServedAllTheSame) {
  SetFabric(R"({"nodeCondition": true})");
  environment_[1] = "KUBERNETES_SERVICE_PORT=1";
  ASSERT_TRUE(kubelet_.Start());
  const auto daemon = RunDaemon();
  EXPECT_TRUE(kubelet_.Devices(kResource, 8, Soon())) << daemon->err();
  ASSERT_TRUE(Logs(*daemon, "node status update failed"));
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

}  // namespace
}  // namespace railhead::testing

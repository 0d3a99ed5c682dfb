// railheadd, railhead-ipam and the stand-in of the Kubernetes API. The node claims an index, and
// railhead-ipam allocates from the part of the subnet that the index gives it, without a request to the API.
// It also does while the API is down.
#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "deviceplugin/support/kubernetes/kube_access.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/ipam/run_ipam.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/support/kubernetes/kube_server.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

constexpr const char* kClaims = "/apis/railhead.io/v1alpha1/nodeindices";

class NodeIndexDaemonTest : public KubeletTest {
 protected:
  NodeIndexDaemonTest() {
    (void)std::signal(SIGPIPE, SIG_IGN);
    server_.Admin("POST", "/api/v1/nodes", R"({"metadata": {"name": "node0"}})");
    const nlohmann::json rail = {
        {"name", "rail0"}, {"pf", "pf0"}, {"subnet", "10.100.0.0/16"}, {"nodeBlock", 26}};
    const nlohmann::json index = {{"from", "kubernetes"}, {"kubernetes", {{"kubeconfig", "/kubeconfig"}}}};
    sysfs_.Write("/etc/railhead/fabric.json", nlohmann::json{{"version", 1},
                                                             {"rails", nlohmann::json::array({rail})},
                                                             {"addresses", {{"index", index}}}}
                                                  .dump());
    sysfs_.Write("/etc/railhead/node-name", "node0\n");
    // Paths are below the root.
    const KubeAccess access = server_.Access();
    auto config = nlohmann::json::parse(server_.Kubeconfig());
    config["clusters"][0]["cluster"]["certificate-authority"] = "/ca.crt";
    config["users"][0]["user"]["tokenFile"] = "/token";
    sysfs_.Write("/kubeconfig", config.dump());
    sysfs_.Write("/ca.crt", ReadFileAt(access.tls.authorities.file));
    sysfs_.Write("/token", ReadFileAt(access.token_file));
  }

  Answer Add(const std::string& container) {
    return RunIpam(sysfs_.directory(), {.command = "ADD", .container = container, .config = kConfig});
  }
  // Allocates until `count` more addresses were given, one at a time. It may wait for an address.
  bool AddUntil(std::size_t count) {
    const std::size_t wanted = given_.size() + count;
    return Eventually([&] {
      const Answer answer = Add("pod" + std::to_string(given_.size()));
      if (answer.status != 0) last_error_ = answer.Error();
      if (answer.status == 0) {
        EXPECT_TRUE(given_.insert(answer.Address()).second) << answer.Address() << " was given twice";
      }
      return given_.size() == wanted;
    });
  }

  static constexpr const char* kConfig =
      R"({"cniVersion":"1.0.0","name":"n","type":"none","ipam":{"type":"railhead-ipam","rail":"rail0"}})";
  KubeServer server_{KubeServer::Kind::kStandIn};
  DeviceManager kubelet_{directory_};
  std::set<std::string> given_;
  std::string last_error_;
};

TEST_F(NodeIndexDaemonTest, AddressesAreThoseOfTheClaimedIndexAlsoWhileTheApiIsDown) {
  // Index 0 is another node's.
  const nlohmann::json claim = {{"apiVersion", "railhead.io/v1alpha1"},
                                {"kind", "NodeIndex"},
                                {"metadata", {{"name", "node-0"}}},
                                {"spec", {{"node", "other"}, {"uid", "u"}}}};
  server_.Admin("POST", kClaims, claim.dump());
  ASSERT_TRUE(kubelet_.Start());
  const Answer before = Add("early");
  EXPECT_NE(before.status, 0);
  EXPECT_EQ(before.Error().rfind("11: ", 0), 0U) << before.Error();

  const auto daemon = RunDaemon();
  ASSERT_TRUE(AddUntil(1)) << last_error_ << daemon->err();
  const auto own = nlohmann::json::parse(server_.Admin("GET", std::string(kClaims) + "/node-1").body);
  EXPECT_EQ(own["spec"]["node"], "node0");

  server_.Kill();
  ASSERT_TRUE(AddUntil(3)) << last_error_ << daemon->err();
  for (const std::string& address : given_) {
    EXPECT_EQ(address.rfind("10.100.0.", 0), 0U) << address;
    const int last = std::stoi(address.substr(std::string("10.100.0.").size()));
    EXPECT_TRUE(last >= 64 && last < 128) << address;
  }
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

}  // namespace
}  // namespace railhead::testing

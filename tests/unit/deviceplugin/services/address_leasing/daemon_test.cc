// railheadd, railhead-ipam and a real etcd. The node leases blocks, and railhead-ipam allocates from them
// without a call to the store. It also does while the store is down.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/cluster_store/etcd_cluster.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/ipam/run_ipam.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

class LeasingDaemonTest : public KubeletTest {
 protected:
  LeasingDaemonTest() {
    const http::HttpEndpoint endpoint = etcd_.Config().endpoints.front();
    const nlohmann::json store = {
        {"type", "etcd"},
        {"blockSize", 8},
        {"renewSeconds", 1},
        {"etcd", {{"endpoints", {"http://" + endpoint.host + ":" + endpoint.port}}}}};
    const nlohmann::json rail = {{"name", "rail0"}, {"pf", "pf0"}, {"subnet", "10.100.0.0/16"}};
    sysfs_.Write("/etc/railhead/fabric.json",
                 nlohmann::json{{"version", 1}, {"rails", {rail}}, {"addresses", {{"store", store}}}}.dump());
    sysfs_.Write("/etc/railhead/node-name", "node0\n");
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
  TempRoot files_;
  EtcdCluster etcd_{files_.directory(), {}};
  DeviceManager kubelet_{directory_};
  std::set<std::string> given_;
  std::string last_error_;
};

TEST_F(LeasingDaemonTest, AddressesComeFromLeasedBlocksAlsoWhileTheStoreIsDown) {
  ASSERT_TRUE(kubelet_.Start());
  const Answer before = Add("early");
  EXPECT_NE(before.status, 0);
  EXPECT_EQ(before.Error().rfind("11: ", 0), 0U) << before.Error();

  const auto daemon = RunDaemon();
  ASSERT_TRUE(AddUntil(1)) << last_error_ << daemon->err();
  // The pods need more addresses than a block has. railheadd leases more blocks in time, or railhead-ipam
  // says try again.
  ASSERT_TRUE(AddUntil(20)) << last_error_ << daemon->err();

  etcd_.Kill(0);
  // 21 addresses need three blocks of eight, which have at least two more.
  ASSERT_TRUE(AddUntil(1)) << last_error_ << daemon->err();
  for (const std::string& address : given_) EXPECT_EQ(address.rfind("10.100.", 0), 0U) << address;
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

}  // namespace
}  // namespace railhead::testing

// The client of kubelet's pod-resources API against a server that answers, hangs and restarts.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "deviceplugin/services/kubelet/pod_resources.h"
#include "deviceplugin/services/kubelet/proto/podresources_v1.grpc.pb.h"
#include "netns/base/files.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Lister final : public v1::PodResourcesLister::Service {
 public:
  grpc::Status List(grpc::ServerContext* /*context*/, const v1::ListPodResourcesRequest* /*request*/,
                    v1::ListPodResourcesResponse* response) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !hangs_; });
    auto* pod = response->add_pod_resources();
    pod->set_name("train-0");
    pod->set_namespace_("ml");
    auto* container = pod->add_containers();
    container->set_name("worker");
    auto* devices = container->add_devices();
    devices->set_resource_name("nvidia.com/gpu");
    devices->add_device_ids("GPU-1");
    devices->add_device_ids("GPU-2");
    for (int i = 0; i < more_devices_; ++i)
      devices->add_device_ids("GPU-5f3c2a10-7e1b-4c55-9d1e-0a1b2c3d4e5f-" + std::to_string(i));
    auto* claim = container->add_dynamic_resources()->add_claim_resources();
    claim->set_driver_name("gpu.nvidia.com");
    claim->set_device_name("gpu-3");
    return grpc::Status::OK;
  }
  void AddDevices(int more) {
    const std::lock_guard lock(mutex_);
    more_devices_ = more;
  }
  void Hang(bool hangs) {
    const std::lock_guard lock(mutex_);
    hangs_ = hangs;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
  int more_devices_ = 0;
};

class PodResourcesTest : public ::testing::Test {
 protected:
  PodResourcesTest() { EXPECT_TRUE(MakeDirectories(root_.root().Path("/var/lib/kubelet/pod-resources"))); }
  ~PodResourcesTest() override { lister_.Hang(false); }

  void Serve() {
    server_.reset();
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + root_.root().Path(kubelet::kPodResourcesSocket),
                             grpc::InsecureServerCredentials());
    builder.RegisterService(&lister_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  TempRoot root_;
  Lister lister_;
  std::unique_ptr<grpc::Server> server_;
  kubelet::PodResources client_{root_.root()};
};

TEST_F(PodResourcesTest, DevicesOfPluginsAndOfDraDrivers) {
  Serve();
  const auto given = client_.List(seconds(30));
  ASSERT_TRUE(given) << Describe(given.error());
  ASSERT_EQ(given->size(), 2U);
  EXPECT_EQ((*given)[0].pod, "ml/train-0");
  EXPECT_EQ((*given)[0].container, "worker");
  EXPECT_EQ((*given)[0].resource, "nvidia.com/gpu");
  EXPECT_EQ((*given)[0].ids, (std::vector<std::string>{"GPU-1", "GPU-2"}));
  EXPECT_EQ((*given)[1].resource, "gpu.nvidia.com");
  EXPECT_EQ((*given)[1].ids, std::vector<std::string>{"gpu-3"});
}

// Plugins that count memory list a device for each MiB of a GPU.
TEST_F(PodResourcesTest, AnAnswerMayBeLarge) {
  lister_.AddDevices(200'000);  // 9 MiB
  Serve();
  const auto given = client_.List(seconds(300));
  ASSERT_TRUE(given) << Describe(given.error());
  ASSERT_EQ(given->size(), 2U);
  EXPECT_EQ((*given)[0].ids.size(), 200'002U);
  EXPECT_EQ((*given)[0].ids.back(), "GPU-5f3c2a10-7e1b-4c55-9d1e-0a1b2c3d4e5f-199999");
  lister_.AddDevices(400'000);
  const auto too_large = client_.List(seconds(300));
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().code, ErrorCode::kIo);
  EXPECT_NE(too_large.error().message.find("16777216"), std::string::npos) << too_large.error().message;
  EXPECT_NE(too_large.error().hint.find("larger pieces"), std::string::npos) << too_large.error().hint;
  lister_.AddDevices(0);
  EXPECT_TRUE(client_.List(seconds(300))) << "and asked again";
}

TEST_F(PodResourcesTest, AKubeletThatDoesNotServeItIsSaidSo) {
  const auto given = client_.List(seconds(30));
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().code, ErrorCode::kNotFound);
}

TEST_F(PodResourcesTest, ABusyKubeletIsNotWaitedFor) {
  Serve();
  lister_.Hang(true);
  const auto given = client_.List(milliseconds(50));
  lister_.Hang(false);
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().code, ErrorCode::kTimeout);
  EXPECT_TRUE(client_.List(seconds(30))) << "and asked again";
}

TEST_F(PodResourcesTest, ARestartedKubeletIsFoundAtOnce) {
  Serve();
  ASSERT_TRUE(client_.List(seconds(30)));
  server_->Shutdown();
  server_.reset();
  EXPECT_FALSE(client_.List(seconds(30)));
  Serve();
  const auto given = client_.List(seconds(30));
  EXPECT_TRUE(given) << Describe(given.error());
}

}  // namespace
}  // namespace railhead::testing

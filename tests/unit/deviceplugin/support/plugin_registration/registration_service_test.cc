// A plugin's registration service and kubelet's plugin watcher, which finds its socket and asks.
#include "deviceplugin/support/plugin_registration/registration_service.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/files.h"
#include "tests/support/eventually.h"
#include "tests/support/kubelet/plugin_watcher.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using plugin_registration::PluginInfo;
using plugin_registration::RegistrationService;
using plugin_registration::Verdict;

// A list to which several threads add.
template <typename T>
class Heard {
 public:
  void Add(T one) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.push_back(std::move(one));
  }
  [[nodiscard]] std::vector<T> All() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return all_;
  }
  // Waits for at least one that `matches`.
  template <typename Matches>
  std::optional<T> Await(const Matches& matches) const {
    std::optional<T> found;
    (void)Eventually([&] {
      for (const T& one : All()) {
        if (!found && matches(one)) found = one;
      }
      return found.has_value();
    });
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<T> all_;
};

// A driver that serves its registration on one socket.
class Driver {
 public:
  Driver(const std::string& socket_path, PluginInfo info)
      : service_(std::move(info), [this](const Verdict& verdict) { verdicts_.Add(verdict); }) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_path, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~Driver() {
    if (server_) server_->Shutdown();
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] bool serves() const { return server_ != nullptr; }
  [[nodiscard]] const Heard<Verdict>& verdicts() const { return verdicts_; }

 private:
  Heard<Verdict> verdicts_;
  RegistrationService service_;
  std::unique_ptr<grpc::Server> server_;
};

class RegistrationTest : public ::testing::Test {
 protected:
  RegistrationTest() { (void)MakeDirectories(directory_); }

  // kubelet's handler of DRA drivers.
  PluginHandler Kubelet() {
    return {.type = "DRAPlugin",
            .versions = {"v1.DRAPlugin", "v1beta1.DRAPlugin"},
            .connect =
                [this](const FoundPlugin& plugin) {
                  found_.Add(plugin);
                  return refuses_ ? "not " + plugin.name + " today" : "";
                },
            .disconnect = [this](const std::string& name) { gone_.Add(name); }};
  }

  // What kubelet reports first to a driver with this information.
  std::optional<Verdict> FirstVerdict(PluginInfo info) {
    const Driver driver(socket_, std::move(info));
    const PluginWatcher kubelet(directory_, Kubelet());
    return driver.verdicts().Await([](const Verdict&) { return true; });
  }

  const TempRoot temp_;
  const std::string directory_ = temp_.directory() + "/plugins_registry";
  const std::string socket_ = directory_ + "/driver-reg.sock";
  const PluginInfo info_ = {
      "DRAPlugin", "example.org", "/plugins/example.org/dra.sock", {"v1.DRAPlugin", "v1beta1.DRAPlugin"}};
  Heard<FoundPlugin> found_;
  Heard<std::string> gone_;
  std::atomic<bool> refuses_ = false;
};

TEST_F(RegistrationTest, KubeletFindsTakesAndDropsIt) {
  const PluginWatcher kubelet(directory_, Kubelet());
  auto driver = std::make_unique<Driver>(socket_, info_);
  ASSERT_TRUE(driver->serves());
  const auto verdict = driver->verdicts().Await([](const Verdict& one) { return one.registered; });
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->error, "");
  ASSERT_EQ(found_.All().size(), 1U);
  EXPECT_EQ(found_.All()[0].name, "example.org");
  EXPECT_EQ(found_.All()[0].endpoint, "/plugins/example.org/dra.sock");
  EXPECT_EQ(found_.All()[0].version, "v1.DRAPlugin");
  EXPECT_TRUE(gone_.All().empty());
  driver.reset();  // gRPC removes the socket
  EXPECT_TRUE(gone_.Await([](const std::string& name) { return name == "example.org"; }));
}

TEST_F(RegistrationTest, AKubeletThatComesLaterFindsItToo) {
  const Driver driver(socket_, info_);
  ASSERT_TRUE(driver.serves());
  for (std::size_t life = 1; life <= 2; ++life) {
    const PluginWatcher kubelet(directory_, Kubelet());
    EXPECT_TRUE(Eventually([&] { return driver.verdicts().All().size() == life; }));
  }
  for (const Verdict& verdict : driver.verdicts().All()) EXPECT_TRUE(verdict.registered);
}

TEST_F(RegistrationTest, WithoutAnEndpointItIsTheSocketItself) {
  PluginInfo info = info_;
  info.endpoint.clear();
  ASSERT_TRUE(FirstVerdict(std::move(info)));
  EXPECT_EQ(found_.All().at(0).endpoint, socket_);
}

TEST_F(RegistrationTest, KubeletTakesTheFirstVersionThatItKnows) {
  PluginInfo info = info_;
  info.supported_versions = {"v2.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAPlugin"};
  ASSERT_TRUE(FirstVerdict(std::move(info)));
  EXPECT_EQ(found_.All().at(0).version, "v1beta1.DRAPlugin");
}

TEST_F(RegistrationTest, ARefusalHasKubeletsWordsAndMayBeFollowedByAcceptance) {
  refuses_ = true;
  const Driver driver(socket_, info_);
  const PluginWatcher kubelet(directory_, Kubelet());
  const auto refusal = driver.verdicts().Await([](const Verdict&) { return true; });
  ASSERT_TRUE(refusal);
  EXPECT_FALSE(refusal->registered);
  EXPECT_EQ(refusal->error, "not example.org today");
  refuses_ = false;
  EXPECT_TRUE(driver.verdicts().Await([](const Verdict& one) { return one.registered; }));
}

TEST_F(RegistrationTest, ATypeThatKubeletDoesNotKnowIsRefused) {
  PluginInfo info = info_;
  info.type = "DevicePlugin";
  const auto verdict = FirstVerdict(std::move(info));
  ASSERT_TRUE(verdict);
  EXPECT_FALSE(verdict->registered);
  EXPECT_NE(verdict->error.find("DevicePlugin"), std::string::npos) << verdict->error;
  EXPECT_TRUE(found_.All().empty());
}

TEST_F(RegistrationTest, VersionsThatKubeletDoesNotKnowAreRefused) {
  PluginInfo info = info_;
  info.supported_versions = {"v2.DRAPlugin"};
  const auto verdict = FirstVerdict(std::move(info));
  ASSERT_TRUE(verdict);
  EXPECT_FALSE(verdict->registered);
  EXPECT_NE(verdict->error, "");
  EXPECT_TRUE(found_.All().empty());
}

}  // namespace
}  // namespace railhead::testing

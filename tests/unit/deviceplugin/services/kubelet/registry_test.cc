// railheadd and kubelet's plugin watcher: it finds a socket, asks, and says whether it took the resource.
#include <atomic>
#include <string>

#include "netns/base/files.h"
#include "tests/support/daemon/restart_node.h"
#include "tests/support/eventually.h"

namespace railhead::testing {
namespace {

class RegistryTest : public RestartNode {
 protected:
  RegistryTest() { UseRegistry(); }
};

TEST_F(RegistryTest, IsFoundServesAndEndsCleanly) {
  const auto kubelet = MakeKubelet();
  ASSERT_TRUE(kubelet->Start());
  const auto daemon = RunDaemon();
  ExpectWhole(kubelet.get(), "at the start");
  EXPECT_TRUE(kubelet->Allocate(kRail0, 2)) << daemon->err();
  for (const auto& [resource, ids] : devices_) EXPECT_EQ(kubelet->Registrations(resource), 1) << resource;
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
  EXPECT_EQ(OurSockets(), 0U);
}

TEST_F(RegistryTest, WaitsForAKubeletThatComesLater) {
  const auto daemon = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return OurSockets() == 3; })) << daemon->err();
  const auto kubelet = MakeKubelet();
  ASSERT_TRUE(kubelet->Start());
  ExpectWhole(kubelet.get(), "later");
  for (const auto& [resource, ids] : devices_) EXPECT_EQ(kubelet->Registrations(resource), 1) << resource;
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

TEST_F(RegistryTest, ARefusalIsToldAndTriedAgain) {
  std::atomic<bool> refuse{true};
  KubeletOptions options;
  options.refuse = [&](const std::string& resource) {
    return refuse && resource == kRail1 ? "not " + resource + " today" : "";
  };
  const auto kubelet = MakeKubelet(std::move(options));
  ASSERT_TRUE(kubelet->Start());
  const auto daemon = RunDaemon();
  EXPECT_TRUE(Eventually([&] { return daemon->err().find("not a.io/rail1 today") != std::string::npos; }))
      << daemon->err();
  EXPECT_TRUE(kubelet->Devices(kRail0, 4, Soon())) << "the others are not concerned";
  EXPECT_EQ(kubelet->Registrations(kRail1), 0);
  refuse = false;
  ExpectWhole(kubelet.get(), "when it is taken");
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

TEST_F(RegistryTest, SaysWhenNobodyLooksThere) {
  DeviceManager kubelet(directory_);  // without a plugin watcher
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon();
  EXPECT_TRUE(Eventually([&] {
    return daemon->err().find("plugin watcher has not asked for a.io/rail0") != std::string::npos;
  })) << daemon->err();
  EXPECT_NE(daemon->err().find("--registration legacy"), std::string::npos);
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
  EXPECT_EQ(OurSockets(), 0U);
}

TEST_F(RegistryTest, ServesAnewWhenItsSocketIsRemoved) {
  const auto kubelet = MakeKubelet();
  ASSERT_TRUE(kubelet->Start());
  const auto daemon = RunDaemon();
  ExpectWhole(kubelet.get(), "at the start");
  const auto names = ListDirectory(sockets_).value().value_or(std::vector<std::string>{});
  for (const std::string& name : names) ASSERT_TRUE(RemoveFile(sockets_ + "/" + name));
  EXPECT_TRUE(Eventually([&] { return kubelet->Registrations(kRail0) >= 2; })) << daemon->err();
  ExpectWhole(kubelet.get(), "anew");
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

TEST_F(RegistryTest, CleansUpAfterAKilledProcess) {
  const auto kubelet = MakeKubelet();
  ASSERT_TRUE(kubelet->Start());
  auto daemon = RunDaemon();
  ExpectWhole(kubelet.get(), "at the start");
  daemon->Kill();
  EXPECT_EQ(OurSockets(), 3U);
  daemon = RunDaemon();
  EXPECT_TRUE(Eventually([&] { return kubelet->Registrations(kRail0) >= 2; })) << daemon->err();
  ExpectWhole(kubelet.get(), "again");
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
  EXPECT_EQ(OurSockets(), 0U);
}

}  // namespace
}  // namespace railhead::testing

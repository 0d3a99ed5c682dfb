// cri-pod's steps with a runtime that runs nothing: the calls that it gets, and the clean-up after failures.
#include "tests/system/cri/pod_run.h"

#include <gtest/gtest.h>

#include "tests/support/temp_root.h"
#include "tests/system/cri/fake_runtime.h"

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr seconds kPlenty(60);

PodSpec Pod() {
  PodSpec pod;
  pod.name = "train";
  pod.uid = "uid-1";
  pod.log_directory = "/var/log/pods/train";
  return pod;
}

ContainerSpec Container() {
  ContainerSpec container;
  container.name = "main";
  container.image = "railhead.test/show:1";
  return container;
}

class PodRunTest : public ::testing::Test {
 protected:
  TempRoot root_;
  FakeRuntime runtime_{root_.directory()};
  CriClient client_{runtime_.socket(), kPlenty};
};

TEST_F(PodRunTest, ASandboxIsAskedForAsByKubelet) {
  PodSpec pod = Pod();
  pod.attempt = 3;
  pod.annotations = {{"note", "text"}};
  const auto sandbox = client_.RunPodSandbox(pod);
  ASSERT_TRUE(sandbox) << Describe(sandbox.error());
  const auto config = runtime_.LastPod();
  EXPECT_EQ(config.metadata().name(), "train");
  EXPECT_EQ(config.metadata().uid(), "uid-1");
  EXPECT_EQ(config.metadata().namespace_(), "default");
  EXPECT_EQ(config.metadata().attempt(), 3U);
  EXPECT_EQ(config.hostname(), "train");
  EXPECT_EQ(config.annotations().at("note"), "text");
  EXPECT_EQ(config.linux().security_context().namespace_options().network(), runtime::v1::POD);
  EXPECT_GT(config.dns_config().options_size(), 0) << "the runtime would copy the node's resolv.conf";
  EXPECT_EQ(client_.PodAddress(*sandbox).value(), "10.244.0.2");
  EXPECT_EQ(client_.PodSandboxes().value(), std::vector<std::string>{*sandbox});
}

TEST_F(PodRunTest, SandboxAndContainerHaveOneUserNamespaceOfTheirOwn) {
  PodSpec pod = Pod();
  pod.host_users = false;
  const auto sandbox = client_.RunPodSandbox(pod);
  ASSERT_TRUE(sandbox && client_.CreateContainer(*sandbox, pod, Container()));
  const auto of_pod = runtime_.LastPod().linux().security_context().namespace_options().userns_options();
  const auto of_container =
      runtime_.LastContainer().config().linux().security_context().namespace_options().userns_options();
  EXPECT_EQ(of_pod.SerializeAsString(), of_container.SerializeAsString());
  EXPECT_EQ(of_pod.mode(), runtime::v1::POD);
  ASSERT_EQ(of_pod.uids_size(), 1);
  EXPECT_NE(of_pod.uids(0).host_id(), 0U);
  EXPECT_EQ(of_pod.uids(0).container_id(), 0U);
  EXPECT_EQ(of_pod.uids(0).SerializeAsString(), of_pod.gids(0).SerializeAsString());
}

TEST_F(PodRunTest, OnTheNodesNetworkNoNamespaceIsMade) {
  PodSpec pod = Pod();
  pod.host_network = true;
  ASSERT_TRUE(client_.RunPodSandbox(pod));
  EXPECT_EQ(runtime_.LastPod().linux().security_context().namespace_options().network(), runtime::v1::NODE);
}

TEST_F(PodRunTest, AContainerRunsToItsEndAndIsRemoved) {
  runtime_.Behave({.exit_code = 7, .log = "T stdout F hello\nT stderr F oh\n"});
  ContainerSpec container = Container();
  container.command = {"/show", "--stay"};
  container.env = {{"A", "1"}, {"B", "x=y"}};
  container.cdi_devices = {"railhead.io/nic=0000:43:10.0"};
  container.annotations = {{"cdi.k8s.io/a", "b/c=d"}};
  const auto sandbox = client_.RunPodSandbox(Pod());
  const auto finished = RunContainer(&client_, sandbox.value(), Pod(), container, kPlenty);
  ASSERT_TRUE(finished) << Describe(finished.error());
  EXPECT_EQ(finished->exit_code, 7);
  EXPECT_EQ(finished->reason, "Error");
  EXPECT_EQ(finished->output.out, "hello\n");
  EXPECT_EQ(finished->output.err, "oh\n");
  EXPECT_TRUE(runtime_.Containers().empty());
  for (const std::string& file : FilesBelow(root_.directory())) EXPECT_FALSE(file.ends_with(".log")) << file;

  const auto request = runtime_.LastContainer();
  EXPECT_EQ(request.pod_sandbox_id(), *sandbox);
  EXPECT_EQ(request.sandbox_config().metadata().uid(), "uid-1");
  EXPECT_EQ(request.config().image().image(), "railhead.test/show:1");
  ASSERT_EQ(request.config().command_size(), 2);
  EXPECT_EQ(request.config().command(1), "--stay");
  ASSERT_EQ(request.config().envs_size(), 2);
  EXPECT_EQ(request.config().envs(1).value(), "x=y");
  ASSERT_EQ(request.config().cdi_devices_size(), 1);
  EXPECT_EQ(request.config().cdi_devices(0).name(), "railhead.io/nic=0000:43:10.0");
  EXPECT_EQ(request.config().annotations().at("cdi.k8s.io/a"), "b/c=d");
}

TEST_F(PodRunTest, AConfinedContainerHasWhatItIsGiven) {
  runtime_.Behave({.log = "T stdout F hello\n"});
  PodSpec pod = Pod();
  pod.host_pid = true;
  ContainerSpec container = Container();
  container.mounts = {{"/etc/a", "/a", true, false}, {"/run/netns", "/run/netns", false, true}};
  container.confinement = Confinement{{"NET_ADMIN"}};
  ASSERT_TRUE(RunContainer(&client_, "s", pod, container, kPlenty));
  const auto config = runtime_.LastContainer().config();
  ASSERT_EQ(config.mounts_size(), 2);
  EXPECT_EQ(config.mounts(0).host_path(), "/etc/a");
  EXPECT_EQ(config.mounts(0).container_path(), "/a");
  EXPECT_TRUE(config.mounts(0).readonly());
  EXPECT_EQ(config.mounts(0).propagation(), runtime::v1::PROPAGATION_PRIVATE);
  EXPECT_FALSE(config.mounts(1).readonly());
  EXPECT_EQ(config.mounts(1).propagation(), runtime::v1::PROPAGATION_HOST_TO_CONTAINER);
  const auto& context = config.linux().security_context();
  EXPECT_EQ(context.namespace_options().pid(), runtime::v1::NODE);
  ASSERT_EQ(context.capabilities().add_capabilities_size(), 1);
  EXPECT_EQ(context.capabilities().add_capabilities(0), "NET_ADMIN");
  ASSERT_EQ(context.capabilities().drop_capabilities_size(), 1);
  EXPECT_EQ(context.capabilities().drop_capabilities(0), "ALL");
  EXPECT_TRUE(context.readonly_rootfs());
  EXPECT_TRUE(context.no_new_privs());
  EXPECT_TRUE(context.has_seccomp());
  EXPECT_EQ(context.seccomp().profile_type(), runtime::v1::SecurityProfile::RuntimeDefault);
  EXPECT_EQ(context.readonly_paths(3), "/proc/sys");
}

TEST_F(PodRunTest, NothingIsLeftOfAContainerThatDoesNotStart) {
  runtime_.Behave({.starts = false});
  const auto finished = RunContainer(&client_, "s", Pod(), Container(), kPlenty);
  ASSERT_FALSE(finished);
  EXPECT_NE(finished.error().message.find("exec format error"), std::string::npos)
      << finished.error().message;
  EXPECT_FALSE(StartContainer(&client_, "s", Pod(), Container()));
  EXPECT_TRUE(runtime_.Containers().empty());
}

TEST_F(PodRunTest, NothingIsLeftOfAContainerThatDoesNotEnd) {
  runtime_.Behave({.ends = false});
  const auto finished = RunContainer(&client_, "s", Pod(), Container(), milliseconds(1));
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code, ErrorCode::kTimeout);
  EXPECT_TRUE(runtime_.Containers().empty());
}

TEST_F(PodRunTest, AStartedContainerStays) {
  runtime_.Behave({.ends = false, .log = "T stdout F so far\n"});
  const auto id = StartContainer(&client_, "s", Pod(), Container());
  ASSERT_TRUE(id) << Describe(id.error());
  EXPECT_EQ(runtime_.Containers(), std::set<std::string>{*id});
  EXPECT_EQ(ReadOutput(&client_, *id).value().out, "so far\n");
}

// Otherwise a runtime that appends would mix the output of two containers.
TEST_F(PodRunTest, TheNextSandboxOfAPodHasOtherLogs) {
  PodSpec pod = Pod();
  ASSERT_TRUE(client_.CreateContainer("s", pod, Container()));
  const auto first = runtime_.LastContainer();
  pod.attempt = 1;
  ASSERT_TRUE(client_.CreateContainer("s", pod, Container()));
  EXPECT_NE(runtime_.LastContainer().config().log_path(), first.config().log_path());
  EXPECT_NE(runtime_.LastContainer().config().metadata().attempt(), first.config().metadata().attempt());
}

// kubelet keeps the ended container beside the new one.
TEST_F(PodRunTest, ARestartedContainerIsAnotherOne) {
  runtime_.Behave({.ends = false});
  ContainerSpec container = Container();
  ASSERT_TRUE(StartContainer(&client_, "s", Pod(), container));
  const auto first = runtime_.LastContainer();
  container.restarts = 1;
  ASSERT_TRUE(StartContainer(&client_, "s", Pod(), container));
  const auto second = runtime_.LastContainer();
  EXPECT_EQ(second.config().metadata().name(), first.config().metadata().name());
  EXPECT_EQ(second.config().metadata().attempt(), 1U);
  EXPECT_NE(second.config().log_path(), first.config().log_path());
  EXPECT_EQ(runtime_.Containers().size(), 2U);
}

TEST_F(PodRunTest, RemovingMayComeTwice) {
  const auto sandbox = client_.RunPodSandbox(Pod());
  ASSERT_TRUE(RemovePod(&client_, sandbox.value()));
  EXPECT_TRUE(runtime_.Sandboxes().empty());
  EXPECT_TRUE(RemovePod(&client_, *sandbox));
}

TEST_F(PodRunTest, TheRuntimesWordsAreInTheError) {
  const auto address = client_.PodAddress("none");
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().code, ErrorCode::kNotFound);
  EXPECT_NE(address.error().message.find("no such sandbox"), std::string::npos) << address.error().message;
}

TEST_F(PodRunTest, ReadinessIsWaitedFor) {
  runtime_.AddImage("a");
  runtime_.ReadyAfter(3);
  const auto ready = WaitReady(&client_, {"a"}, kPlenty);
  EXPECT_TRUE(ready) << Describe(ready.error());
}

TEST_F(PodRunTest, WhatIsMissingIsNamed) {
  runtime_.ReadyAfter(1 << 20);
  const auto ready = WaitReady(&client_, {"a"}, milliseconds(1));
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, ErrorCode::kTimeout);
  EXPECT_NE(ready.error().message.find("NetworkReady: cni plugin not initialized"), std::string::npos)
      << ready.error().message;
  EXPECT_NE(ready.error().message.find("image a"), std::string::npos) << ready.error().message;
}

TEST_F(PodRunTest, PodsOnTheNodesNetworkNeedNoOther) {
  runtime_.AddImage("a");
  runtime_.ReadyAfter(1 << 20);
  const auto ready = WaitReady(&client_, {"a"}, milliseconds(1), true);
  EXPECT_TRUE(ready) << Describe(ready.error());
}

TEST_F(PodRunTest, APermanentErrorEndsTheWaiting) {
  runtime_.Behave({.has_cri = false});
  const auto ready = WaitReady(&client_, {}, std::chrono::hours(1));
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, ErrorCode::kUnsupported);
}

TEST(PodRunWithoutRuntimeTest, NobodyAnswers) {
  const TempRoot root;
  CriClient client(root.directory() + "/none.sock", kPlenty);
  const auto ready = WaitReady(&client, {}, milliseconds(1));
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, ErrorCode::kTimeout);
  EXPECT_NE(ready.error().message.find("none.sock"), std::string::npos) << ready.error().message;
}

}  // namespace
}  // namespace railhead::testing

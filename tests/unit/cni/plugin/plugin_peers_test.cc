// What users of other plugins reported, as far as no other test here has it. (sriov-cni
// #8: plugin_userspace_test; #119, #222, #285, #291, #296, #303: plugin_options_test; #219,
// #220, #313: plugin_claim_test; #250, #445: plugin_tuning_test. An ADD killed before its
// state was saved, and a DEL that failed in the middle: unit.cni_plugin.faults.)
#include <cerrno>
#include <filesystem>

#include "cni/protocol/cni_result.h"
#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {
namespace {

class PluginPeersTest : public PluginFixture {
 protected:
  Call WithSettings() { return {.config = Usual() + R"(,"vlan":300,"mac":"02:aa:00:00:00:01","mtu":4200)"}; }
  // As the VF was before: every setting by the PF, and the interface's own.
  void ExpectHome() {
    const FakeNetdev* netdev = kernel_.state().OfFunction(vfs_[0][0]);
    ASSERT_NE(netdev, nullptr);
    EXPECT_EQ(netdev->ns, kHost);
    EXPECT_EQ(netdev->link.name, "pf0v0");
    EXPECT_EQ(netdev->link.mac, mac_);
    EXPECT_EQ(netdev->link.mtu, 1500);
    EXPECT_EQ(Vf(0), before_);
    EXPECT_EQ(Files(), "");
    EXPECT_EQ(HeldAddresses(), "");
  }
  void SetUp() override {
    PluginFixture::SetUp();
    before_ = Vf(0);
    mac_ = kernel_.state().OfFunction(vfs_[0][0])->link.mac;
  }

  VfState before_;
  MacAddress mac_;
};

// sriov-cni #126, #349: the sandbox died before DEL, which then comes without CNI_NETNS or
// with the path of what is gone: name, MAC, MTU and VLAN stayed as they were in the pod.
TEST_F(PluginPeersTest, SandboxThatDiedBeforeDel) {
  for (const bool without_path : {true, false}) {
    ASSERT_TRUE(Add(WithSettings()));
    Call del = WithSettings();
    del.command = "DEL";
    CniRequest request = Request(del);
    if (without_path) request.netns.clear();
    kernel_.RemoveNamespace(pod_);
    const auto deleted = plugin_.Del(request);
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    ExpectHome();
    pod_ = MakePod("pod1");
  }
}

// The same in exclusive mode: rdma-cni's DEL failed for ever on a path that is gone, and
// left its state where there was none (rdma-cni #165, ib-sriov-cni #135).
TEST_F(PluginPeersTest, SandboxWithItsRdmaDeviceThatDiedBeforeDel) {
  kernel_.SetRdmaMode(RdmaNetnsMode::kExclusive);
  kernel_.Sync();
  for (const bool without_path : {true, false}) {
    ASSERT_TRUE(Add(WithSettings()));
    Call del = WithSettings();
    del.command = "DEL";
    CniRequest request = Request(del);
    if (without_path) request.netns.clear();
    kernel_.RemoveNamespace(pod_);
    const auto deleted = plugin_.Del(request);
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    ExpectHome();
    EXPECT_EQ(kernel_.state().Rdma("mlx5_pf0v0")->ns, kHost);
    pod_ = MakePod("pod1");
  }
}

// sriov-network-device-plugin #685: a DEL was missed, and the VF went to the next pod with
// the last one's MAC, while another pod was given that MAC too.
TEST_F(PluginPeersTest, MissedDelLeavesNoMacToTheNextPod) {
  ASSERT_TRUE(Add(WithSettings()));
  kernel_.RemoveNamespace(pod_);
  pod_ = MakePod("pod2");
  const Call next{.container = "c2", .config = Usual()};
  const auto added = Add(next);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(PodLink().mac, mac_);
  EXPECT_TRUE(Vf(0).mac.IsZero());
  EXPECT_EQ(PodLink().mtu, 1500);
  EXPECT_EQ(Vf(0).vlan, 100) << "its own";
  ASSERT_TRUE(Del(next));
  ExpectHome();
}

// sriov-cni: the first DEL failed, its state was removed all the same, and the second one
// had nothing to do.
TEST_F(PluginPeersTest, DelThatFailedIsRepeated) {
  for (const char* call : {"SetVf", "MoveLink", "GetVf", "ChangeLink"}) {
    ASSERT_TRUE(Add(WithSettings()));
    kernel_.FailEvery(call, EIO);
    EXPECT_FALSE(Del(WithSettings())) << call;
    EXPECT_FALSE(Del(WithSettings())) << call;
    kernel_.StopFailing();
    const auto deleted = Del(WithSettings());
    ASSERT_TRUE(deleted) << call << ": " << Describe(deleted.error());
    ExpectHome();
  }
}

// sriov-cni: a marker that was missing made DEL fail. Ours must not make it forget the
// device either.
TEST_F(PluginPeersTest, DeviceLinkThatIsMissing) {
  ASSERT_TRUE(Add(WithSettings()));
  std::filesystem::remove(sysfs_.directory() + "/run/railhead/devices/" + vfs_[0][0]);
  EXPECT_TRUE(Check(WithSettings()));
  const auto deleted = Del(WithSettings());
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  ExpectHome();
}

// sriov-cni #178: after a reboot the VF was still taken for the pod's of before.
TEST_F(PluginPeersTest, Reboot) {
  ASSERT_TRUE(Add(WithSettings()));
  // VFs are made anew; /run may be kept by who mounts it.
  kernel_.RemoveNamespace(pod_);
  for (const auto& bdf : vfs_[0]) {
    kernel_.state().Unbind(*kernel_.state().Function(bdf));
    const int vf = kernel_.state().Function(bdf)->vf;
    kernel_.state().Function(bdf)->state = before_;
    kernel_.state().Function(bdf)->state->vf = vf;
    kernel_.state().Bind(*kernel_.state().Function(bdf));
  }
  kernel_.Sync();
  mac_ = kernel_.state().OfFunction(vfs_[0][0])->link.mac;
  WriteFileAt(sysfs_.directory() + "/proc/sys/kernel/random/boot_id", "99999999-9999\n");
  pod_ = MakePod("pod2");
  const Call next{.container = "c2", .config = Usual()};
  const auto added = Add(next);
  ASSERT_TRUE(added) << Describe(added.error());
  const auto old = Del(WithSettings());
  EXPECT_TRUE(old) << Describe(old.error());
  EXPECT_EQ(HeldAddresses(), "c2@net1") << "the address store outlives boots, and DEL reaches it";
  const auto checked = Check(next);
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(next));
  const FakeNetdev* netdev = kernel_.state().OfFunction(vfs_[0][0]);
  EXPECT_EQ(netdev->ns, kHost);
  EXPECT_EQ(netdev->link.mac, mac_);
}

// sriov-cni #123, #124, #316: no MTU could be asked for, and another one was not put back.
TEST_F(PluginPeersTest, MtuThatThePodChanged) {
  ASSERT_TRUE(Add({.config = Usual()}));
  (void)kernel_.state().Change(*kernel_.state().Find(pod_, "net1"), {.mtu = 9000});
  ASSERT_TRUE(Del({.config = Usual()}));
  ExpectHome();
}

// sriov-cni #321: on its way a VF had a name that someone else on the host has, and udev
// renamed what was not its own. Nothing passes through the host under a pod's name.
TEST_F(PluginPeersTest, NamesOfTheHostAreNotInTheWay) {
  kernel_.AddVeth(kHost, "net1", kHost, "peer");
  const auto before = World();
  const auto added = Add({.config = Usual()});
  ASSERT_TRUE(added) << Describe(added.error());
  kernel_.AddVeth(pod_, "pf0v0", kHost, "peer2");
  ASSERT_TRUE(Add({.ifname = "net2", .config = Usual(1)}));
  EXPECT_EQ(kernel_.Log().find("host: interface 3 name net1"), std::string::npos);
  ASSERT_TRUE(Del({.ifname = "net2", .config = Usual(1)}));
  ASSERT_TRUE(Del({.config = Usual()}));
  kernel_.state().RemoveNetdev(kernel_.state().Find(pod_, "pf0v0")->id);
  EXPECT_EQ(ChangedSince(before), "");
}

}  // namespace
}  // namespace railhead::testing

// The options of sriov-cni, with its names and meanings: its configurations work when only "type" changes. An
// absent option differs from 0.
#include <cerrno>
#include <filesystem>

#include "cni/protocol/cni_result.h"
#include "tests/support/plugin/plugin_fixture.h"
#include "tests/support/plugin/vf_fields.h"

namespace railhead::testing {
namespace {

class PluginOptionsTest : public PluginFixture {
 protected:
  void SetUp() override {
    PluginFixture::SetUp();
    // Only what the configuration says: no rail says more.
    std::filesystem::remove(sysfs_.directory() + "/etc/railhead/fabric.json");
    VfSettings before;
    before.vlan = {{7, 2, kVlanProto8021ad}};
    before.rate = {{50, 5000}};
    before.trust = true;
    before.link_state = VfLinkState::kEnable;
    ASSERT_EQ(kernel_.state().SetVf(*kernel_.state().Function("0000:43:00.0"), 0, before), 0);
    before_ = Vf(0);
  }

  // ADD with these fields, then DEL. Returns the VF's settings in between, nullopt when ADD failed.
  std::optional<VfSettings> VfWith(const std::string& fields) {
    const Call call{.config = Usual() + (fields.empty() ? "" : "," + fields)};
    const auto before = World();
    const auto added = Add(call);
    if (!added) {
      ADD_FAILURE() << fields << ": " << Describe(added.error());
      return std::nullopt;
    }
    const VfSettings vf = Vf(0);
    const auto checked = Check(call);
    EXPECT_TRUE(checked) << fields << ": " << Describe(checked.error());
    EXPECT_TRUE(Del(call));
    EXPECT_EQ(ChangedSince(before), "") << fields;
    return vf;
  }

  // A whole configuration as users have it, with "type" replaced.
  CniRequest WholeRequest(const std::string& config, const std::string& command,
                          const std::string& args = "") {
    CniRequest request = Request({.command = command, .args = args});
    request.network = "sriov-net";
    request.cni_version = "0.3.1";
    request.config = config;
    return request;
  }
  // ADD and DEL succeed, and DEL restores the VF. `look` runs in between.
  template <typename F>
  void WorksUnchanged(const std::string& config, F&& look, const std::string& args = "") {
    SCOPED_TRACE(config);
    const auto before = World();
    const auto added = plugin_.Add(WholeRequest(config, "ADD", args));
    ASSERT_TRUE(added) << Describe(added.error());
    look();
    const auto deleted = plugin_.Del(WholeRequest(config, "DEL", args));
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    EXPECT_EQ(ChangedSince(before), "");
  }

  VfSettings before_;
};

// ADD sets it. CHECK finds that another program has reset it. DEL restores the VF.
TEST_F(PluginOptionsTest, EverySettingIsSetCheckedAndPutBack) {
  int changed = 0;
  for (const auto& [name, field] : VfFields()) {
    SCOPED_TRACE(field);
    const std::string vlan = name == "vlan" ? "" : R"("vlan":100,)";  // its parts need one
    const Call call{.config = Usual() + "," + vlan + field};
    const auto before = World();
    const auto added = Add(call);
    // ADD waits for a carrier in vain, and undoes everything
    if (field == R"("link_state":"disable")") {
      ASSERT_FALSE(added);
      EXPECT_EQ(ChangedSince(before), "");
      continue;
    }
    ASSERT_TRUE(added) << Describe(added.error());
    EXPECT_TRUE(Check(call));
    const VfSettings set = Vf(0);
    ForEachVfSetting([&](const std::string& key, auto setting) {
      if (set.*setting == before_.*setting) return;
      ++changed;
      VfSettings undo;
      undo.*setting = before_.*setting;
      ASSERT_EQ(kernel_.state().SetVf(*kernel_.state().Function("0000:43:00.0"), 0, undo), 0);
      const auto checked = Check(call);
      ASSERT_FALSE(checked) << key;
      EXPECT_NE(checked.error().message.find(": " + key + " is "), std::string::npos)
          << checked.error().message;
      undo.*setting = set.*setting;
      ASSERT_EQ(kernel_.state().SetVf(*kernel_.state().Function("0000:43:00.0"), 0, undo), 0);
    });
    ASSERT_TRUE(Del(call));
    EXPECT_EQ(ChangedSince(before), "");
  }
  EXPECT_GT(changed, 15);
}

TEST_F(PluginOptionsTest, WithoutAnyNothingIsTouched) {
  EXPECT_EQ(VfWith(""), before_);
}

// sriov-cni #291, #296: an absent vlan cleared the one that was set.
TEST_F(PluginOptionsTest, VlanAbsentAndZeroDiffer) {
  EXPECT_EQ(VfWith("")->vlan->id, 7);
  const auto cleared = VfWith(R"("vlan":0)");
  EXPECT_EQ(cleared->vlan->id, 0);
  EXPECT_EQ(cleared->vlan->qos, 0);
  EXPECT_EQ(cleared->vlan->proto, kVlanProto8021q);
  const auto set = VfWith(R"("vlan":4094)");
  EXPECT_EQ(set->vlan->id, 4094);
  EXPECT_EQ(set->vlan->qos, 0) << "vlanQoS is 0 unless it is said";
  EXPECT_EQ(set->vlan->proto, kVlanProto8021q) << "802.1q unless it is said";
}

TEST_F(PluginOptionsTest, VlanQos) {
  EXPECT_EQ(VfWith(R"("vlan":100,"vlanQoS":7)")->vlan->qos, 7);
  EXPECT_EQ(VfWith(R"("vlan":100,"vlanQoS":0)")->vlan->qos, 0);
  EXPECT_EQ(VfWith(R"("vlan":0,"vlanQoS":0)")->vlan->id, 0);
  EXPECT_EQ(VfWith(R"("vlanQoS":0)"), before_) << "0 without a vlan asks for nothing";
  for (const char* bad : {R"("vlanQoS":3)", R"("vlan":0,"vlanQoS":3)"}) {
    const auto added = Add({.config = Usual() + "," + bad});
    ASSERT_FALSE(added) << bad;
    EXPECT_EQ(CniCodeOf(added.error().code), kCniInvalidConfig);
    EXPECT_NE(added.error().message.find("/vlanQoS: needs a vlan"), std::string::npos)
        << added.error().message;
  }
}

TEST_F(PluginOptionsTest, VlanProtoInAnyCase) {
  for (const char* proto : {"802.1ad", "802.1AD", "802.1Ad"}) {
    const auto vf = VfWith(R"("vlan":100,"vlanQoS":3,"vlanProto":")" + std::string(proto) + "\"");
    EXPECT_EQ(vf->vlan->proto, kVlanProto8021ad) << proto;
    EXPECT_EQ(vf->vlan->qos, 3);
  }
  for (const char* proto : {"802.1q", "802.1Q", ""}) {
    EXPECT_EQ(VfWith(R"("vlan":100,"vlanProto":")" + std::string(proto) + "\"")->vlan->proto,
              kVlanProto8021q);
  }
  for (const auto& [bad, words] : {std::pair(R"("vlanProto":"802.1ad")", "/vlanProto: needs a vlan"),
                                   {R"("vlan":0,"vlanProto":"802.1ad")", "/vlanProto: 802.1ad needs a vlan"},
                                   {R"("vlan":1,"vlanProto":"802.3")", "/vlanProto: '802.3' is not known"}}) {
    const auto added = Add({.config = Usual() + "," + bad});
    ASSERT_FALSE(added) << bad;
    EXPECT_NE(added.error().message.find(words), std::string::npos) << added.error().message;
  }
}

TEST_F(PluginOptionsTest, RatesAbsentAndZeroDiffer) {
  EXPECT_EQ(VfWith("")->rate->max, 5000U);
  const auto unlimited = VfWith(R"("max_tx_rate":0)");
  EXPECT_EQ(unlimited->rate->max, 0U);
  EXPECT_EQ(unlimited->rate->min, 0U) << "the other one is sent as 0";
  const auto min = VfWith(R"("min_tx_rate":100)");
  EXPECT_EQ(min->rate->min, 100U);
  EXPECT_EQ(min->rate->max, 0U);
  const auto both = VfWith(R"("min_tx_rate":100,"max_tx_rate":200)");
  EXPECT_EQ(both->rate->min, 100U);
  EXPECT_EQ(both->rate->max, 200U);
}

// Defect of sriov-cni: "ON", "yes" or a misspelt "on" silently meant off.
TEST_F(PluginOptionsTest, SwitchesAreOnOrOffOrAbsent) {
  EXPECT_EQ(VfWith(R"("spoofchk":"off","trust":"off")")->spoofchk, false);
  EXPECT_EQ(VfWith(R"("spoofchk":"off","trust":"off")")->trust, false);
  EXPECT_EQ(VfWith(R"("spoofchk":"on","trust":"on")")->spoofchk, true);
  EXPECT_EQ(VfWith(R"("spoofchk":"","trust":"","link_state":"","mac":"","vlanProto":"")"), before_)
      << "empty is absent";
  for (const char* bad : {R"("spoofchk":"ON")", R"("trust":"yes")", R"("link_state":"Enable")"}) {
    EXPECT_FALSE(Add({.config = Usual() + "," + bad})) << bad;
  }
}

TEST_F(PluginOptionsTest, LinkState) {
  EXPECT_EQ(VfWith(R"("link_state":"auto")")->link_state, VfLinkState::kAuto);
  EXPECT_EQ(VfWith(R"("link_state":"enable")")->link_state, VfLinkState::kEnable);
  const auto disabled = Add({.config = Usual() + R"(,"link_state":"disable","linkTimeoutSeconds":0)"});
  EXPECT_FALSE(disabled) << "a VF without carrier carries nobody";
}

// sriov-cni #285, #303: qos and protocol of before were lost.
TEST_F(PluginOptionsTest, WhatWasThereComesBackWhole) {
  ASSERT_TRUE(VfWith(R"("vlan":300,"vlanQoS":7,"mac":"02:AA:00:00:00:01","spoofchk":"off","trust":"off",
      "link_state":"auto","max_tx_rate":1000,"min_tx_rate":10)"));
  EXPECT_EQ(Vf(0), before_);
}

// Defect of sriov-cni (#119, #222): if a later part of a configuration was refused, the earlier part stayed.
// DEL did nothing, since no state was saved yet.
TEST_F(PluginOptionsTest, RefusedHalfWayIsTakenBack) {
  kernel_.state().Function("0000:43:00.0")->driver.link_state = false;
  const auto before = World();
  const Call call{.config = Usual() + R"(,"vlan":300,"mac":"02:aa:00:00:00:01","max_tx_rate":10,
      "trust":"off","link_state":"auto")"};
  EXPECT_FALSE(Add(call));
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_TRUE(Del(call));
  EXPECT_EQ(ChangedSince(before), "");
}

// As its documentation shows configurations: only "type" is another one.
TEST_F(PluginOptionsTest, KernelDriverConfiguration) {
  WorksUnchanged(R"({"cniVersion":"0.3.1","name":"sriov-net","type":"railhead","deviceID":")" + vfs_[0][0] +
                     R"(","vlan":1000,"spoofchk":"on","logLevel":"debug","logFile":"/tmp/sriov.log",
          "ipam":{"type":"test-ipam","address":"10.56.217.2/24","gateway":"10.56.217.1",
                  "routes":[{"dst":"0.0.0.0/0"}]}})",
                 [&] {
                   EXPECT_EQ(Vf(0).vlan->id, 1000);
                   EXPECT_EQ(kernel_.state().Find(pod_, "net1")->addresses.at(0).ToString(),
                             "10.56.217.2/24");
                 });
}

TEST_F(PluginOptionsTest, EverySettingConfiguration) {
  WorksUnchanged(R"({"cniVersion":"0.3.1","name":"sriov-net","type":"railhead","deviceID":")" + vfs_[0][0] +
                     R"(","vlan":1000,"vlanQoS":4,"vlanProto":"802.1ad","min_tx_rate":100,"max_tx_rate":200,
          "spoofchk":"off","trust":"on","link_state":"enable","capabilities":{"mac":true,"ips":true},
          "runtimeConfig":{"mac":"CA:FE:C0:FF:EE:00","ips":["10.1.1.9/24"]},
          "ipam":{"type":"test-ipam","address":"10.1.1.9/24"},"args":{"cni":{"debug":true}}})",
                 [&] {
                   EXPECT_EQ(Vf(0).mac->ToString(), "ca:fe:c0:ff:ee:00");
                   EXPECT_EQ(Vf(0).vlan->proto, kVlanProto8021ad);
                   EXPECT_EQ(Vf(0).rate->min, 100U);
                 });
}

TEST_F(PluginOptionsTest, ConfigurationWithoutIpam) {
  WorksUnchanged(R"({"cniVersion":"0.3.1","name":"sriov-net","type":"railhead","deviceID":")" + vfs_[0][0] +
                     R"(","mac":"CA:FE:C0:FF:EE:01"})",
                 [&] {
                   EXPECT_TRUE(PodLink().up);
                   EXPECT_TRUE(kernel_.state().Find(pod_, "net1")->addresses.empty());
                   EXPECT_EQ(IpamCalls(), "");
                 });
}

// CNI_ARGS beats the configuration, the runtime's capability beats both.
TEST_F(PluginOptionsTest, MacOfArguments) {
  WorksUnchanged(R"({"cniVersion":"0.3.1","name":"sriov-net","type":"railhead","deviceID":")" + vfs_[0][0] +
                     R"(","mac":"CA:FE:C0:FF:EE:01"})",
                 [&] { EXPECT_EQ(PodLink().mac.ToString(), "ca:fe:c0:ff:ee:02"); },
                 "IgnoreUnknown=true;MAC=CA:FE:C0:FF:EE:02");
}

// What users of other plugins reported, as far as no other test has it. (sriov-cni #119, #222, #285, #291,
// #296, #303: above; #8: plugin_userspace_test; #219, #220, #313: plugin_acquire_test; #250, #445:
// plugin_tuning_test. An ADD killed before its state was saved, and a DEL that failed in the middle:
// unit.cni_plugin.faults.)

class PluginPeersTest : public PluginFixture {
 protected:
  Call WithSettings() { return {.config = Usual() + R"(,"vlan":300,"mac":"02:aa:00:00:00:01","mtu":4200)"}; }
  // As the VF was before: every setting by the PF, and the interface's own.
  void ExpectRestored() {
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

  VfSettings before_;
  MacAddress mac_;
};

// Defect of sriov-cni (#126, #349): the sandbox died before DEL. DEL then had no CNI_NETNS, or the path of a
// gone namespace. Name, MAC, MTU and VLAN stayed as in the pod.
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
    ExpectRestored();
    pod_ = MakePod("pod1");
  }
}

// The same in exclusive mode (rdma-cni #165, ib-sriov-cni #135). The DEL of rdma-cni failed for ever on a
// gone path. Without a path it left its state behind.
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
    ExpectRestored();
    EXPECT_EQ(kernel_.state().Rdma("mlx5_pf0v0")->ns, kHost);
    pod_ = MakePod("pod1");
  }
}

// Defect of sriov-network-device-plugin (#685): a DEL was missed. The VF went to the next pod with the last
// pod's MAC, while another pod also got that MAC.
TEST_F(PluginPeersTest, MissedDelLeavesNoMacToTheNextPod) {
  ASSERT_TRUE(Add(WithSettings()));
  kernel_.RemoveNamespace(pod_);
  pod_ = MakePod("pod2");
  const Call next{.container = "c2", .config = Usual()};
  const auto added = Add(next);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(PodLink().mac, mac_);
  EXPECT_TRUE(Vf(0).mac->IsZero());
  EXPECT_EQ(PodLink().mtu, 1500);
  EXPECT_EQ(Vf(0).vlan->id, 100) << "its own";
  ASSERT_TRUE(Del(next));
  ExpectRestored();
}

// Defect of sriov-cni: the first DEL failed and still removed its state, so the second one had nothing to do.
TEST_F(PluginPeersTest, DelThatFailedIsRepeated) {
  for (const char* call : {"SetVf", "MoveLink", "GetVf", "ChangeLink"}) {
    ASSERT_TRUE(Add(WithSettings()));
    kernel_.FailEvery(call, EIO);
    EXPECT_FALSE(Del(WithSettings())) << call;
    EXPECT_FALSE(Del(WithSettings())) << call;
    kernel_.StopFailing();
    const auto deleted = Del(WithSettings());
    ASSERT_TRUE(deleted) << call << ": " << Describe(deleted.error());
    ExpectRestored();
  }
}

// Defect of sriov-cni: a missing marker made DEL fail. For Railhead, a missing marker must not make DEL
// forget the device either.
TEST_F(PluginPeersTest, LockFileThatIsMissing) {
  ASSERT_TRUE(Add(WithSettings()));
  std::filesystem::remove(sysfs_.directory() + "/run/railhead/locks/" + vfs_[0][0] + ".lock");
  EXPECT_TRUE(Check(WithSettings()));
  const auto deleted = Del(WithSettings());
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  ExpectRestored();
}

// sriov-cni #178: after a reboot the VF was still taken for the pod's of before.
TEST_F(PluginPeersTest, Reboot) {
  ASSERT_TRUE(Add(WithSettings()));
  // VFs are made again. An administrator may keep /run over a reboot.
  kernel_.RemoveNamespace(pod_);
  for (const auto& bdf : vfs_[0]) {
    kernel_.state().Unbind(*kernel_.state().Function(bdf));
    kernel_.state().Function(bdf)->state = before_;
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

// Defects of sriov-cni (#123, #124, #316): the MTU could not be configured, and a changed one was not
// restored.
TEST_F(PluginPeersTest, MtuThatThePodChanged) {
  ASSERT_TRUE(Add({.config = Usual()}));
  (void)kernel_.state().Change(*kernel_.state().Find(pod_, "net1"), {{.mtu = 9000}});
  ASSERT_TRUE(Del({.config = Usual()}));
  ExpectRestored();
}

// Defect of sriov-cni (#321): on the host a VF briefly had a name that another interface has. Then udev
// renamed a foreign interface. With Railhead no device is on the host under a pod's name.
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

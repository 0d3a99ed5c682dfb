// sriov-cni's options, under its names and with its meaning: its configurations work with
// nothing but "type" changed. Absent differs from 0.
#include "cni/protocol/cni_result.h"
#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {
namespace {

class PluginOptionsTest : public PluginFixture {
 protected:
  void SetUp() override {
    PluginFixture::SetUp();
    // Only what the configuration says: no rail says more.
    std::filesystem::remove(sysfs_.directory() + "/etc/railhead/fabric.json");
    VfChange before;
    before.vlan = {{7, 2, kVlanProto8021ad}};
    before.rate = {{50, 5000}};
    before.trust = true;
    before.link_state = VfLinkState::kEnable;
    ASSERT_EQ(kernel_.state().SetVf(*kernel_.state().Function("0000:43:00.0"), 0, before), 0);
    before_ = Vf(0);
  }

  // ADD with these fields, DEL; what the VF was in between, nullopt when ADD failed.
  std::optional<VfState> VfWith(const std::string& fields) {
    const Call call{.config = Usual() + (fields.empty() ? "" : "," + fields)};
    const auto before = World();
    const auto added = Add(call);
    if (!added) {
      ADD_FAILURE() << fields << ": " << Describe(added.error());
      return std::nullopt;
    }
    const VfState vf = Vf(0);
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
  // It attaches, and detaches to what was before; `look` in between.
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

  VfState before_;
};

TEST_F(PluginOptionsTest, WithoutAnyNothingIsTouched) {
  EXPECT_EQ(VfWith(""), before_);
}

// sriov-cni #291, #296: an absent vlan cleared the one that was set.
TEST_F(PluginOptionsTest, VlanAbsentAndZeroDiffer) {
  EXPECT_EQ(VfWith("")->vlan, 7);
  const auto cleared = VfWith(R"("vlan":0)");
  EXPECT_EQ(cleared->vlan, 0);
  EXPECT_EQ(cleared->qos, 0);
  EXPECT_EQ(cleared->vlan_proto, kVlanProto8021q);
  const auto set = VfWith(R"("vlan":4094)");
  EXPECT_EQ(set->vlan, 4094);
  EXPECT_EQ(set->qos, 0) << "vlanQoS is 0 unless it is said";
  EXPECT_EQ(set->vlan_proto, kVlanProto8021q) << "802.1q unless it is said";
}

TEST_F(PluginOptionsTest, VlanQos) {
  EXPECT_EQ(VfWith(R"("vlan":100,"vlanQoS":7)")->qos, 7);
  EXPECT_EQ(VfWith(R"("vlan":100,"vlanQoS":0)")->qos, 0);
  EXPECT_EQ(VfWith(R"("vlan":0,"vlanQoS":0)")->vlan, 0);
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
    EXPECT_EQ(vf->vlan_proto, kVlanProto8021ad) << proto;
    EXPECT_EQ(vf->qos, 3);
  }
  for (const char* proto : {"802.1q", "802.1Q", ""}) {
    EXPECT_EQ(VfWith(R"("vlan":100,"vlanProto":")" + std::string(proto) + "\"")->vlan_proto, kVlanProto8021q);
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
  EXPECT_EQ(VfWith("")->max_tx_rate, 5000U);
  const auto unlimited = VfWith(R"("max_tx_rate":0)");
  EXPECT_EQ(unlimited->max_tx_rate, 0U);
  EXPECT_EQ(unlimited->min_tx_rate, 0U) << "the other one is sent as 0";
  const auto min = VfWith(R"("min_tx_rate":100)");
  EXPECT_EQ(min->min_tx_rate, 100U);
  EXPECT_EQ(min->max_tx_rate, 0U);
  const auto both = VfWith(R"("min_tx_rate":100,"max_tx_rate":200)");
  EXPECT_EQ(both->min_tx_rate, 100U);
  EXPECT_EQ(both->max_tx_rate, 200U);
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
  const auto disabled = Add({.config = Usual() + R"(,"link_state":"disable","waitSeconds":0)"});
  EXPECT_FALSE(disabled) << "a VF without carrier carries nobody";
}

// sriov-cni #285, #303: qos and protocol of before were lost.
TEST_F(PluginOptionsTest, WhatWasThereComesBackWhole) {
  ASSERT_TRUE(VfWith(R"("vlan":300,"vlanQoS":7,"mac":"02:AA:00:00:00:01","spoofchk":"off","trust":"off",
      "link_state":"auto","max_tx_rate":1000,"min_tx_rate":10)"));
  EXPECT_EQ(Vf(0), before_);
}

// sriov-cni #119, #222: of a configuration of which a later part was refused the earlier
// part stayed, and DEL did nothing since nothing was saved yet.
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
                   EXPECT_EQ(Vf(0).vlan, 1000);
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
                   EXPECT_EQ(Vf(0).mac.ToString(), "ca:fe:c0:ff:ee:00");
                   EXPECT_EQ(Vf(0).vlan_proto, kVlanProto8021ad);
                   EXPECT_EQ(Vf(0).min_tx_rate, 100U);
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

}  // namespace
}  // namespace railhead::testing

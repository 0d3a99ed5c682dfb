// CHECK: each promise of ADD is broken, and CHECK names it. (For interface settings and sysctls see
// plugin_tuning_test.cc.)
#include <linux/neighbour.h>
#include <sys/xattr.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "cni/protocol/cni_result.h"
#include "tests/support/plugin/rails_fixture.h"
#include "tests/support/plugin/vf_fields.h"

namespace railhead::testing {
namespace {

// sriov-cni's CHECK says yes to everything.
class PluginCheckTest : public RailsFixture {
 protected:
  void Attach(const Call& call) {
    call_ = call;
    const auto added = Add(call);
    ASSERT_TRUE(added) << Describe(added.error());
    const auto checked = Check(call);
    ASSERT_TRUE(checked) << Describe(checked.error());
  }
  // What CHECK says; "" when it finds nothing.
  std::string Said() {
    const auto checked = Check(call_);
    if (checked) return "";
    EXPECT_EQ(CniCodeOf(checked.error().code), kCniConflict) << Describe(checked.error());
    return checked.error().message;
  }
  void ExpectSaid(const std::string& words) { EXPECT_NE(Said().find(words), std::string::npos) << Said(); }
  FakeState& state() { return kernel_.state(); }
  void SetVf(int rail, const VfSettings& change) {
    const std::string pf = state().Function(Bdf(rail))->pf;
    ASSERT_EQ(state().SetVf(*state().Function(pf), 0, change), 0);
  }

  Call call_;
};

TEST_F(PluginCheckTest, VfSettings) {
  Call call = AllRails();
  call.config = R"("deviceID":")" + Bdf(0) + R"(","vlan":100,"vlanQoS":3,"mac":"02:aa:00:00:00:01",
      "spoofchk":"off","trust":"on","link_state":"enable","max_tx_rate":1000,"min_tx_rate":10,)" +
                Ipam();
  Attach(call);
  const VfSettings good{.mac = MacAddress::Parse("02:aa:00:00:00:01"),
                        .vlan = {{100, 3}},
                        .spoofchk = false,
                        .trust = true,
                        .link_state = VfLinkState::kEnable,
                        .rate = {{10, 1000}}};
  const std::vector<std::pair<VfSettings, std::string>> broken = {
      {{.mac = MacAddress::Parse("02:aa:00:00:00:02")},
       "mac is 02:aa:00:00:00:02, should be 02:aa:00:00:00:01"},
      {{.vlan = {{200, 3}}}, "vlan is 200, QoS 3, should be 100, QoS 3"},
      {{.vlan = {{100, 5}}}, "vlan is 100, QoS 5, should be 100, QoS 3"},
      {{.vlan = {{100, 3, kVlanProto8021ad}}}, "vlan is 100, QoS 3, 802.1ad, should be 100, QoS 3"},
      {{.spoofchk = true}, "spoofchk is on, should be off"},
      {{.trust = false}, "trust is off, should be on"},
      {{.link_state = VfLinkState::kAuto}, "link_state is auto, should be enable"},
      {{.rate = {{10, 2000}}}, "rate is 10 to 2000 Mbit/s, should be 10 to 1000 Mbit/s"},
      {{.rate = {{0, 1000}}}, "rate is 0 to 1000 Mbit/s, should be 10 to 1000 Mbit/s"}};
  for (const auto& [change, words] : broken) {
    SetVf(0, change);
    ExpectSaid(words);
    SetVf(0, good);
    EXPECT_EQ(Said(), "");
  }
}

// Drivers set some fields that they do not report (rtnl_fill_vfinfo omits them).
TEST_F(PluginCheckTest, WhatADriverDoesNotReportIsNoDifference) {
  std::map<std::string, std::string> fields;
  for (auto& [key, field] : VfFields()) fields.emplace(std::move(key), std::move(field));
  Call call = AllRails();
  call.config = R"("deviceID":")" + Bdf(0) + "\"";
  for (const auto& [key, field] : fields) call.config += "," + field;
  call.config += "," + Ipam();
  Attach(call);
  VfSettings& state_of_vf = *state().Function(Bdf(0))->state;
  const VfSettings good = state_of_vf;
  ForEachVfSetting([&](const std::string& key, auto setting) {
    ASSERT_TRUE(good.*setting) << key;
    (state_of_vf.*setting).reset();
    EXPECT_EQ(Said(), "") << key;
    state_of_vf = good;
  });
}

TEST_F(PluginCheckTest, VfThatIsGone) {
  Attach(AllRails());
  std::erase_if(state().functions, [&](const FakeFunction& function) { return function.bdf == Bdf(2); });
  ExpectSaid("VF 0 of pf2 is gone");
}

// The PF does not list its VFs, as in switchdev mode. ADD has promised nothing about the VF.
TEST_F(PluginCheckTest, PfThatDoesNotListItsVfs) {
  std::filesystem::remove(sysfs_.directory() + "/etc/railhead/fabric.json");  // with its VLANs
  state().functions.clear();
  Attach({.network = "plain", .config = R"("deviceID":")" + Bdf(0) + R"(",)" + Ipam()});
  EXPECT_EQ(Said(), "");
}

TEST_F(PluginCheckTest, PfThatIsGone) {
  Attach(AllRails());
  // First: a new namespace has a loopback, for which the list of interfaces may move.
  const std::string elsewhere = kernel_.AddNamespace("elsewhere");
  ASSERT_EQ(state().Move(*state().Find(kHost, "pf1"), elsewhere, "pf1", {}), 0);
  kernel_.Sync();
  ExpectSaid("PF 0000:83:00.0");
}

TEST_F(PluginCheckTest, InterfaceDownOrWithoutCarrierOrGone) {
  Attach(AllRails());
  state().Find(pod_, "rail1")->wire = false;
  ExpectSaid("rail1 has no carrier");
  state().Find(pod_, "rail1")->wire = true;
  EXPECT_EQ(Said(), "");
  kernel_.SetUp(pod_, "rail1", false);
  ExpectSaid("rail1 is down");
  ASSERT_EQ(state().Change(*state().Find(pod_, "rail1"), {.name = "other"}), 0);
  ExpectSaid("interface rail1 is missing in the pod");
}

TEST_F(PluginCheckTest, AnotherDeviceUnderItsName) {
  Attach(AllRails());
  state().Find(pod_, "rail2")->link.parent_device = "0000:99:00.0";
  ExpectSaid("rail2: device is 0000:99:00.0, should be " + Bdf(2));
}

// A veth that the pod gave the VF's name and MAC is not the VF.
TEST_F(PluginCheckTest, NoDeviceUnderItsName) {
  Attach(AllRails());
  state().Find(pod_, "rail2")->link.parent_device.clear();
  ExpectSaid("rail2: device is none, should be " + Bdf(2));
}

TEST_F(PluginCheckTest, MacOfTheInterface) {
  Attach(AllRails());
  ASSERT_EQ(state().Change(*state().Find(pod_, "rail0"), {.mac = MacAddress::Parse("02:bb:00:00:00:01")}), 0);
  ExpectSaid("rail0: mac is 02:bb:00:00:00:01");
}

TEST_F(PluginCheckTest, Addresses) {
  Attach(AllRails());
  ASSERT_EQ(state().DeleteAddress(*state().Find(pod_, "rail1"), *IpPrefix::Parse("10.200.0.10/24")), 0);
  ExpectSaid("address 10.200.0.10/24 is missing on rail1");
}

TEST_F(PluginCheckTest, EachRule) {
  Attach(AllRails());
  auto& rules = state().Namespace(pod_)->rules;
  const auto all = rules;
  int tried = 0;
  for (const auto& rule : all) {
    if (rule.priority == 0 || rule.priority >= 32766) continue;
    std::erase(rules, rule);
    ExpectSaid("rule '" + rule.ToString() + "' is missing");
    rules = all;
    ++tried;
  }
  EXPECT_EQ(tried, 6);
  EXPECT_EQ(Said(), "");
}

TEST_F(PluginCheckTest, EachRoute) {
  Attach(AllRails());
  auto& routes = state().Namespace(pod_)->routes;
  const auto all = routes;
  int tried = 0;
  for (const auto& route : all) {
    const FakeNetdev* netdev = state().Find(pod_, route.link);
    if (netdev->bdf.empty() || route.protocol == 2) continue;  // the cluster's; the kernel's own
    std::erase(routes, route);
    ExpectSaid("route '" + route.destination.ToString());
    ExpectSaid("is missing");
    routes = all;
    ++tried;
  }
  EXPECT_EQ(tried, 9) << "per rail: connected and gateway routes of its table, gateway route in main";
  // There, but by another way.
  for (auto& route : routes) {
    if (route.gateway == IpAddress::Parse("10.150.0.254")) route.gateway = IpAddress::Parse("10.150.0.1");
  }
  ExpectSaid("10.150.0.254");
  routes = all;
  for (auto& route : routes) {
    if (route.source == IpAddress::Parse("10.150.0.10")) route.source.reset();
  }
  ExpectSaid("src 10.150.0.10");
  routes = all;
  for (auto& route : routes) {
    if (route.gateway == IpAddress::Parse("10.150.0.254")) route.metric = 77;
  }
  ExpectSaid("10.150.0.254");
  routes = all;
  EXPECT_EQ(Said(), "");
}

TEST_F(PluginCheckTest, RdmaDeviceAndGid) {
  Attach(AllRails());
  FakeRdma& rdma = *state().Rdma("mlx5_pf1v0");
  rdma.port_down = true;
  kernel_.Sync();
  ExpectSaid("RDMA device mlx5_pf1v0: port 1 is not ACTIVE");
  rdma.port_down = false;
  kernel_.Sync();
  const auto gids = rdma.gids;
  rdma.gids.Clear();
  ExpectSaid("mlx5_pf1v0: no RoCE v2 GID of 10.200.0.10 on rail1");
  const IpAddress other = *IpAddress::Parse("10.200.0.99");
  const int netdev = rdma.netdev;
  rdma.gids.AddDefaults(netdev, state().Netdev(netdev)->link.mac);
  rdma.gids.Add(netdev, other, 0);
  rdma.gids.Add(netdev, *IpAddress::Parse("10.200.0.10"), 0);
  ExpectSaid("GID index of 10.200.0.10 is 5, should be 3");
  rdma.gids = gids;
  EXPECT_EQ(Said(), "");
  rdma.uverbs = 77;
  kernel_.Sync();
  ExpectSaid("uverbs node is uverbs77");
}

TEST_F(PluginCheckTest, RdmaDeviceThatLeftThePod) {
  kernel_.SetRdmaMode(RdmaNetnsMode::kExclusive);
  kernel_.Sync();
  for (const char* more : {"", R"(,"ncclConfig":"off")"}) {
    Call call = AllRails();
    call.config += more;
    Attach(call);
    ASSERT_EQ(state().MoveRdma(*state().Rdma("mlx5_pf2v0"), kHost), 0);
    kernel_.Sync();
    ExpectSaid("mlx5_pf2v0");
    ExpectSaid("is not visible in the pod");
    ASSERT_EQ(state().MoveRdma(*state().Rdma("mlx5_pf2v0"), pod_), 0);
    kernel_.Sync();
    ASSERT_TRUE(Del(call));
  }
}

TEST_F(PluginCheckTest, NcclConfigAndCdiFiles) {
  Attach(AllRails());
  const std::string conf = sysfs_.directory() + "/run/railhead/nccl/c1/nccl.conf";
  const std::string text = File("/run/railhead/nccl/c1/nccl.conf");
  const auto with = [&](const std::string& what, const std::string& by) {
    std::string changed = text;
    changed.replace(changed.find(what), what.size(), by);
    WriteFileAt(conf, changed);
  };
  with("mlx5_pf1v0", "mlx5_pf1v01");
  ExpectSaid("does not name mlx5_pf1v0");
  with("GID_INDEX=3", "GID_INDEX=1");
  ExpectSaid("NCCL_IB_GID_INDEX");
  std::filesystem::remove(conf);
  ExpectSaid("nccl.conf is missing");
  WriteFileAt(conf, text);
  EXPECT_EQ(Said(), "");
  const std::string spec = "/run/cdi/railhead-" + Bdf(2) + ".json";
  const std::string spec_text = File(spec);
  std::string other = spec_text;
  const std::string node = "uverbs" + std::to_string(state().Rdma("mlx5_pf2v0")->uverbs) + "\"";
  other.replace(other.find(node), node.size(), "uverbs99\"");
  WriteFileAt(sysfs_.directory() + spec, other);
  ExpectSaid("does not name /dev/infiniband/uverbs");
  std::filesystem::remove(sysfs_.directory() + spec);
  ExpectSaid("railhead-" + Bdf(2) + ".json is missing");
}

TEST_F(PluginCheckTest, FilesThatSelinuxKeepsFromContainers) {
  const auto label = [](const std::string& path, const std::string& text) {
    return ::setxattr(path.c_str(), "security.selinux", text.c_str(), text.size() + 1, 0) == 0;
  };
  if (!label(sysfs_.directory(), "x")) GTEST_SKIP() << "needs root, and a file system with labels";
  sysfs_.Write("/sys/fs/selinux/enforce", "1");
  Attach(AllRails());
  EXPECT_EQ(Said(), "");
  const std::string conf = sysfs_.directory() + "/run/railhead/nccl/c1/nccl.conf";
  ASSERT_TRUE(label(conf, "system_u:object_r:var_run_t:s0"));
  ExpectSaid("SELinux keeps containers from reading " + conf +
             ": it is labelled system_u:object_r:var_run_t:s0");
  sysfs_.Remove("/sys/fs/selinux");
  EXPECT_EQ(Said(), "");
}

TEST_F(PluginCheckTest, AllDifferencesAtOnce) {
  Attach(AllRails());
  SetVf(0, {.vlan = {{999, 0}}});
  kernel_.SetUp(pod_, "rail1", false);
  ExpectSaid("vlan is 999");
  ExpectSaid("rail1 is down");
}

TEST_F(PluginCheckTest, AnotherNamespace) {
  Attach(AllRails());
  call_.netns = MakePod("pod2");
  ExpectSaid("CNI_NETNS is another namespace than at ADD");
}

// The runtime's cached result must be what ADD returned.
TEST_F(PluginCheckTest, PrevResult) {
  call_ = AllRails();
  const auto added = Add(call_);
  ASSERT_TRUE(added);
  const std::string config = call_.config;
  call_.config = config + R"(,"prevResult":)" + *added;
  EXPECT_EQ(Said(), "");
  std::string other = *added;
  other.replace(other.find("10.200.0.10/24"), 14, "10.200.0.11/24");
  call_.config = config + R"(,"prevResult":)" + other;
  ExpectSaid("prevResult does not have address 10.200.0.10/24");
  call_.config = config + R"(,"prevResult":{"cniVersion":"1.0.0","ips":[{"address":"nonsense"}]})";
  EXPECT_FALSE(Check(call_));
}

TEST_F(PluginCheckTest, KilledAddIsNoAttachment) {
  ASSERT_TRUE(Kill(AllRails(), CountAdd(AllRails(), 85) - 3));
  const auto checked = Check(AllRails());
  ASSERT_FALSE(checked);
  EXPECT_EQ(CniCodeOf(checked.error().code), kCniNotFound);
}

TEST_F(PluginCheckTest, ChangesNothing) {
  Attach(AllRails());
  const auto before = World();
  kernel_.SetUp(pod_, "rail1", false);
  const auto broken = World();
  EXPECT_NE(broken, before);
  EXPECT_NE(Said(), "");
  EXPECT_EQ(ChangedSince(broken), "");
}

}  // namespace
}  // namespace railhead::testing

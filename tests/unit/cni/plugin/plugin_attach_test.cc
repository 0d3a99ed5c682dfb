// What ADD makes and what CHECK sees. DEL restores the host.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>

#include "cni/protocol/cni_result.h"
#include "cni/state/attach_log.h"
#include "cni/state/journal.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"
#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {
namespace {

class PluginAttachTest : public PluginFixture {
 protected:
  std::vector<std::string> Routes(std::uint32_t table) {
    std::vector<std::string> texts;
    for (const auto& route : kernel_.state().Namespace(pod_)->routes) {
      if (route.table != table) continue;
      const FakeNetdev* netdev = kernel_.state().Find(pod_, route.link);
      texts.push_back(route.destination.ToString() + " via " +
                      (route.gateway ? route.gateway->ToString() : "-") + " dev " + netdev->link.name +
                      " src " + (route.source ? route.source->ToString() : "-"));
    }
    std::sort(texts.begin(), texts.end());
    return texts;
  }
  std::vector<std::string> Rules() {
    std::vector<std::string> texts;
    for (const auto& rule : kernel_.state().Namespace(pod_)->rules) {
      if (rule.priority == 0 || rule.priority >= 32766) continue;
      texts.push_back((rule.from ? "from " + rule.from->ToString() : "oif " + rule.oif) + " lookup " +
                      std::to_string(rule.table));
    }
    std::sort(texts.begin(), texts.end());
    return texts;
  }
  // ADD with `fields`, CHECK, DEL: all succeed and nothing is left.
  void RoundTrip(const std::string& fields, const std::string& args = "") {
    const auto before = World();
    const Call call{.config = fields, .args = args};
    const auto added = Add(call);
    ASSERT_TRUE(added) << Describe(added.error());
    EXPECT_NE(World(), before);
    const auto checked = Check(call);
    EXPECT_TRUE(checked) << Describe(checked.error());
    const auto deleted = Del(call);
    EXPECT_TRUE(deleted) << Describe(deleted.error());
    EXPECT_EQ(ChangedSince(before), "");
  }
};

TEST_F(PluginAttachTest, AttachesByTheRail) {
  const auto result = Add({.config = Usual()});
  ASSERT_TRUE(result) << Describe(result.error());
  const Link link = PodLink();
  EXPECT_TRUE(link.up && link.carrier);
  EXPECT_EQ(link.parent_device, vfs_[0][0]);
  EXPECT_EQ(link.addr_gen_mode, AddrGenMode::kNone);
  EXPECT_EQ(Vf(0).vlan->id, 100);
  EXPECT_EQ(Vf(0).vlan->qos, 3);
  const FakeNetdev& netdev = *kernel_.state().Find(pod_, "net1");
  EXPECT_EQ(netdev.addresses, std::vector<IpPrefix>{*IpPrefix::Parse("10.100.0.10/24")})
      << "no automatic address";
  EXPECT_EQ(netdev.ipv4.at(Ipv4Conf::kArpIgnore), 1);
  EXPECT_EQ(netdev.ipv4.at(Ipv4Conf::kArpAnnounce), 2);
  ASSERT_EQ(kernel_.announcements().size(), 1U);
  EXPECT_EQ(kernel_.announcements()[0].link, "net1");
  EXPECT_EQ(kernel_.announcements()[0].addresses[0].ToString(), "10.100.0.10");
  EXPECT_EQ(IpamCalls(), "ADD");
}

// railctl why reads them: also failures before anything was changed.
TEST_F(PluginAttachTest, EachFailedAddIsLoggedWithPodAndError) {
  const std::string args = "K8S_POD_NAMESPACE=train;K8S_POD_NAME=worker-0;K8S_POD_UID=uid-1";
  ASSERT_TRUE(MakeStateFolder(sysfs_.root(), sysfs_.root().Path("/run/railhead")));
  const auto bad = Add({.config = R"("no such key":1)", .args = args});
  ASSERT_FALSE(bad);
  FailIpam("ADD");
  const auto refused = Add({.container = "c2", .config = Usual()});
  ASSERT_FALSE(refused);
  FailIpam("");
  ASSERT_TRUE(Add({.container = "c3", .config = Usual()}));
  const auto timings = ReadAttachTimings(sysfs_.root());
  ASSERT_TRUE(timings) << Describe(timings.error());
  ASSERT_EQ(timings->size(), 3U);
  const AttachTiming& first = timings->front();
  EXPECT_EQ(first.key.container_id, "c1");
  EXPECT_EQ(first.error, bad.error().message);
  EXPECT_EQ(first.hint, bad.error().hint);
  EXPECT_EQ(first.code, CniCodeOf(bad.error().code));
  EXPECT_EQ(first.pod, "train/worker-0");
  EXPECT_EQ(first.pod_uid, "uid-1");
  EXPECT_EQ(first.links, 0U) << "its devices were not known yet";
  EXPECT_EQ((*timings)[1].error, refused.error().message);
  EXPECT_EQ((*timings)[1].links, 1U);
  EXPECT_EQ(timings->back().error, "");
  EXPECT_EQ(timings->back().code, 0);
}

TEST_F(PluginAttachTest, SeveralRailsHaveTheirOwnTables) {
  ASSERT_TRUE(Add({.config = Usual(0, 0)}));
  const auto second = Add({.network = "rail1", .ifname = "net2", .config = Usual(0, 1)});
  ASSERT_TRUE(second) << Describe(second.error());
  EXPECT_EQ(Routes(100), (std::vector<std::string>{"10.0.0.0/8 via 10.100.0.254 dev net1 src 10.100.0.10",
                                                   "10.100.0.0/24 via - dev net1 src 10.100.0.10"}));
  EXPECT_EQ(Routes(101), (std::vector<std::string>{"10.0.0.0/8 via 10.200.0.254 dev net2 src 10.200.0.10",
                                                   "10.200.0.0/24 via - dev net2 src 10.200.0.10"}));
  EXPECT_EQ(Rules(),
            (std::vector<std::string>{"from 10.100.0.10/32 lookup 100", "from 10.200.0.10/32 lookup 101",
                                      "oif net1 lookup 100", "oif net2 lookup 101"}));
  const auto main = Routes(kTableMain);
  EXPECT_NE(std::find(main.begin(), main.end(), "0.0.0.0/0 via 10.244.0.1 dev eth0 src -"), main.end())
      << "the cluster network keeps the default route";
  EXPECT_NE(std::find(main.begin(), main.end(), "10.100.0.0/24 via - dev net1 src 10.100.0.10"), main.end());
}

TEST_F(PluginAttachTest, TwoVfsOfOneRailHaveDifferentTables) {
  ASSERT_TRUE(Add({.config = Usual(0)}));
  const auto second = Add({.ifname = "net2", .config = Usual(1)});
  ASSERT_TRUE(second) << Describe(second.error());
  EXPECT_EQ(Rules(),
            (std::vector<std::string>{"from 10.100.0.10/32 lookup 100", "from 10.100.0.11/32 lookup 101",
                                      "oif net1 lookup 100", "oif net2 lookup 101"}));
}

TEST_F(PluginAttachTest, RoundTripLeavesTheHostAsItWas) {
  RoundTrip(Usual());
}

// Every setting, and all at once, from a VF that had others before.
TEST_F(PluginAttachTest, RoundTripOfEverySetting) {
  VfSettings before;
  before.vlan = {{7, 2, 0x88a8}};
  before.rate = {{50, 5000}};
  before.trust = true;
  before.link_state = VfLinkState::kEnable;
  ASSERT_EQ(kernel_.state().SetVf(*kernel_.state().Function("0000:43:00.0"), 0, before), 0);
  for (const char* fields :
       {R"("vlan":300)", R"("vlan":0)", R"("vlan":300,"vlanQoS":7)", R"("mac":"02:AA:00:00:00:01")",
        R"("spoofchk":"off")", R"("trust":"off")", R"("link_state":"auto")", R"("max_tx_rate":1000)",
        R"("min_tx_rate":100)", R"("min_tx_rate":100,"max_tx_rate":1000)", R"("mtu":4200)",
        R"("gateway":"10.100.0.1")", R"("routes":[])", R"("routes":["10.9.0.0/16"])", R"("table":7000)",
        R"("announce":false)", R"("ncclConfig":"off")",
        R"("vlan":300,"vlanQoS":7,"mac":"02:aa:00:00:00:01","spoofchk":"off","trust":"off",
           "link_state":"auto","max_tx_rate":1000,"min_tx_rate":10,"mtu":4200)"}) {
    SCOPED_TRACE(fields);
    RoundTrip(Usual() + "," + fields);
  }
}

TEST_F(PluginAttachTest, SettingsReachTheVf) {
  const auto added = Add({.config = Usual() +
                                    R"(,"vlan":300,"vlanQoS":7,"mac":"02:AA:00:00:00:01","spoofchk":"off",
      "trust":"on","link_state":"enable","max_tx_rate":1000,"min_tx_rate":10,"mtu":4200)"});
  ASSERT_TRUE(added) << Describe(added.error());
  const VfSettings vf = Vf(0);
  EXPECT_EQ(vf.vlan->id, 300);
  EXPECT_EQ(vf.vlan->qos, 7);
  EXPECT_EQ(vf.mac->ToString(), "02:aa:00:00:00:01");
  EXPECT_EQ(vf.spoofchk, false);
  EXPECT_EQ(vf.trust, true);
  EXPECT_EQ(vf.link_state, VfLinkState::kEnable);
  EXPECT_EQ(vf.rate->max, 1000U);
  EXPECT_EQ(vf.rate->min, 10U);
  EXPECT_EQ(PodLink().mac.ToString(), "02:aa:00:00:00:01");
  EXPECT_EQ(PodLink().mtu, 4200);
}

// Like sriov-cni. One message sets both rates. If only one is configured, the other is sent as 0, no limit.
// Without either, no rate changes.
TEST_F(PluginAttachTest, OneRateTakesTheLimitOffTheOther) {
  VfSettings before;
  before.rate = {{50, 5000}};
  ASSERT_EQ(kernel_.state().SetVf(*kernel_.state().Function("0000:43:00.0"), 0, before), 0);
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_EQ(Vf(0).rate->max, 5000U);
  ASSERT_TRUE(Del({.config = Usual()}));
  ASSERT_TRUE(Add({.config = Usual() + R"(,"max_tx_rate":1000)"}));
  EXPECT_EQ(Vf(0).rate->min, 0U);
  EXPECT_EQ(Vf(0).rate->max, 1000U);
  ASSERT_TRUE(Del({.config = Usual()}));
  EXPECT_EQ(Vf(0).rate->min, 50U);
  EXPECT_EQ(Vf(0).rate->max, 5000U);
}

// The drivers ice and i40e reset the VF for its new MAC, and iavf then refuses for some time. ADD and DEL
// succeed whatever iavf answers and however often. DEL restores the host.
TEST_F(PluginAttachTest, AVfThatItsPfResetsForAMac) {
  const std::string config = Usual() + R"(,"mac":"02:aa:00:00:00:01")";
  for (const int error : {EAGAIN, EACCES, EBUSY}) {
    for (const int refusals : {0, 1, 2, 9}) {
      SCOPED_TRACE(std::to_string(error) + ", " + std::to_string(refusals) + " times");
      const auto before = World();
      kernel_.ResetVfs(refusals, error);
      const auto added = Add({.config = config});
      ASSERT_TRUE(added) << Describe(added.error());
      EXPECT_EQ(PodLink().mac.ToString(), "02:aa:00:00:00:01");
      EXPECT_TRUE(PodLink().up);
      const auto gone = Del({.config = config});
      ASSERT_TRUE(gone) << Describe(gone.error());
      EXPECT_EQ(ChangedSince(before), "");
    }
  }
  kernel_.ResetVfs(1000, EINVAL);
  const auto refused = Add({.config = config});
  EXPECT_FALSE(refused) << "what is no reset is not tried again";
  EXPECT_EQ(refused.error().sys_errno, EINVAL);
}

// In switchdev mode a PF's directory also lists the representors of its VFs and subfunctions. They stay on
// the host when the PF moves, and DEL does not take them for the PF.
TEST_F(PluginAttachTest, ThePfIsNoneOfItsRepresentors) {
  const std::string pf = "0000:e3:00.0";
  const std::string net = "/sys/bus/pci/devices/" + pf + "/net/";
  kernel_.AddPf({.address = pf, .netdev = "pf9"}, {});
  const Call call{.config = R"("ncclConfig":"off","ipam":{},"deviceID":")" + pf + "\""};
  for (const char* name : {"aaa", "zzz"}) {
    kernel_.AddVeth(kHost, name, kHost, std::string(name) + "p");
    for (const char* port_name : {"pf0vf0", "pf0sf88", "c1pf0vf3"}) {
      SCOPED_TRACE(std::string(name) + " " + port_name);
      sysfs_.Write(net + name + "/phys_port_name", port_name);
      const auto before = World();
      const auto added = Add(call);
      ASSERT_TRUE(added) << Describe(added.error());
      EXPECT_EQ(PodLink().parent_device, pf);
      EXPECT_NE(kernel_.state().Find(kHost, name), nullptr);
      const auto gone = Del(call);
      ASSERT_TRUE(gone) << Describe(gone.error());
      EXPECT_EQ(ChangedSince(before), "");
    }
  }
  sysfs_.Write(net + "pf9b/dev_port", "1\n");
  const auto before = World();
  const auto refused = Add(call);
  ASSERT_FALSE(refused) << "which of the two ports it is would not be known any more";
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("pf9, pf9b"), std::string::npos) << refused.error().message;
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginAttachTest, WithoutMacNoMacIsTouched) {
  const auto mac = kernel_.state().OfFunction(vfs_[0][0])->link.mac;
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_TRUE(Vf(0).mac->IsZero());
  EXPECT_EQ(PodLink().mac, mac);
}

TEST_F(PluginAttachTest, WithoutVlanAnywhereNoVlanIsTouched) {
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
              R"({"version":1,"rails":[{"name":"rail0","pf":"pf0"}]})");
  VfSettings before;
  before.vlan = {{7, 2, 0x88a8}};
  ASSERT_EQ(kernel_.state().SetVf(*kernel_.state().Function("0000:43:00.0"), 0, before), 0);
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_EQ(Vf(0).vlan->id, 7);
  EXPECT_EQ(Vf(0).vlan->proto, 0x88a8);
}

TEST_F(PluginAttachTest, MacPrecedence) {
  const std::string config = Usual() + R"(,"mac":"02:aa:00:00:00:01")";
  ASSERT_TRUE(Add({.config = config, .args = "MAC=02:aa:00:00:00:02"}));
  EXPECT_EQ(Vf(0).mac->ToString(), "02:aa:00:00:00:02");
  ASSERT_TRUE(Del({.config = config}));
  ASSERT_TRUE(Add({.config = config + R"(,"runtimeConfig":{"mac":"02:aa:00:00:00:03"})",
                   .args = "MAC=02:aa:00:00:00:02"}));
  EXPECT_EQ(Vf(0).mac->ToString(), "02:aa:00:00:00:03");
}

TEST_F(PluginAttachTest, DevicePrecedence) {
  const auto& vfs = vfs_[0];
  const std::string pci = R"("pciBusID":")" + vfs[2] + "\"";
  const std::string id = R"("deviceID":")" + vfs[1] + "\"";
  const std::string runtime = R"("runtimeConfig":{"deviceID":")" + vfs[0] + "\"}";
  for (const auto& [fields, expected] : {std::pair(pci, vfs[2]), std::pair(pci + "," + id, vfs[1]),
                                         std::pair(pci + "," + id + "," + runtime, vfs[0])}) {
    const Call call{.config = fields + "," + Ipam()};
    const auto added = Add(call);
    ASSERT_TRUE(added) << Describe(added.error());
    EXPECT_EQ(PodLink().parent_device, expected);
    ASSERT_TRUE(Del(call));
  }
}

TEST_F(PluginAttachTest, UpperCaseDeviceIsTheSameDevice) {
  vfs_.push_back(kernel_.AddPf({.address = "0000:af:00.0", .netdev = "pf2"}, {.count = 1}));
  std::string upper = vfs_[2][0];
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  RoundTrip("\"deviceID\":\"" + upper + "\"," + Ipam());
}

TEST_F(PluginAttachTest, ResultInEveryVersion) {
  for (const std::string version : {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}) {
    const Call call{.config = Usual() + R"(,"mtu":4200)", .cni_version = version};
    const auto result = Add(call);
    ASSERT_TRUE(result) << Describe(result.error());
    const auto json = nlohmann::json::parse(*result, nullptr, false);
    EXPECT_EQ(json["cniVersion"], version);
    EXPECT_EQ(json["interfaces"][0]["name"], "net1");
    EXPECT_EQ(json["interfaces"][0]["sandbox"], pod_);
    EXPECT_EQ(json["interfaces"][0]["mac"], PodLink().mac.ToString());
    EXPECT_EQ(json["interfaces"][0].contains("pciID"), version == "1.1.0");
    EXPECT_EQ(json["interfaces"][0].contains("mtu"), version == "1.1.0");
    EXPECT_EQ(json["ips"][0]["address"], "10.100.0.10/24");
    EXPECT_EQ(json["ips"][0]["gateway"], "10.100.0.254");
    EXPECT_EQ(json["ips"][0]["interface"], 0);
    EXPECT_EQ(json["ips"][0].contains("version"), version.starts_with("0."));
    EXPECT_EQ(json["routes"][0]["dst"], "10.0.0.0/8");
    ASSERT_TRUE(Del(call));
  }
}

TEST_F(PluginAttachTest, ChainedResultKeepsWhatCameBefore) {
  const auto result = Add({.config = Usual() + R"(,"prevResult":{"cniVersion":"1.0.0",
      "interfaces":[{"name":"eth0","sandbox":"x"}],"ips":[{"address":"10.244.0.5/24","interface":0}],
      "routes":[{"dst":"0.0.0.0/0"}],"dns":{"nameservers":["10.96.0.10"]}})"});
  ASSERT_TRUE(result) << Describe(result.error());
  const auto json = nlohmann::json::parse(*result, nullptr, false);
  EXPECT_EQ(json["interfaces"][0]["name"], "eth0");
  EXPECT_EQ(json["interfaces"][1]["name"], "net1");
  EXPECT_EQ(json["ips"][1]["interface"], 1);
  EXPECT_EQ(json["dns"]["nameservers"][0], "10.96.0.10");
}

TEST_F(PluginAttachTest, WithoutAddressAndWithoutFabric) {
  RoundTrip(Device() + R"(,"ipam":{},"ncclConfig":"off")");
  EXPECT_EQ(IpamCalls(), "");
  std::filesystem::remove(sysfs_.directory() + "/etc/railhead/fabric.json");
  RoundTrip(Usual());
  RoundTrip(Device() + R"(,"ipam":{})");
}

TEST_F(PluginAttachTest, IPv6AndBothFamilies) {
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
              R"({"version":1,"rails":[{"name":"rail0","pf":"pf0","subnet":"fd00:100::/64",
                  "gateway":"fd00:100::fe","routes":["fd00::/16"]}]})");
  RoundTrip(Device() + "," + Ipam("fd00:100::10/64"));
}

// Some nodes and pods switch IPv6 off for all interfaces of a namespace. A rail that has IPv6 addresses gets
// it back on its own interface, and nowhere else.
TEST_F(PluginAttachTest, APodWithoutIpv6GetsItOnARailThatHasIt) {
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
              R"({"version":1,"rails":[{"name":"rail0","pf":"pf0"}]})");
  const NetNs ns = *kernel_.OpenNetns(pod_);
  const auto disabled = [&](const std::string& of) {
    return kernel_.ReadSysctls(ns, {"net/ipv6/conf/" + of + "/disable_ipv6"})->front().value_or("absent");
  };
  const std::string four = Device() + "," + Ipam();
  const std::string routed = Device() + R"(,"gateway":"fd00:100::fe","routes":["fd00::/16"],"ipam":)";
  const std::string six = routed + R"({"type":"test-ipam","address":"fd00:100::10/64"})";
  const std::string both = routed + R"({"type":"test-ipam","address":["10.100.0.10/24","fd00:100::10/64"]})";
  for (const std::string& config : {six, both}) {
    kernel_.ClearLog();
    ASSERT_TRUE(Add({.config = config}));
    EXPECT_EQ(kernel_.Log().find("disable_ipv6"), std::string::npos) << "no call where nothing is off";
    ASSERT_TRUE(Del({.config = config}));
  }
  for (const char* off : {"all", "default"}) {
    ASSERT_TRUE(kernel_.WriteSysctls(ns, {{std::string("net/ipv6/conf/") + off + "/disable_ipv6", "1"}}));
    for (const std::string& config : {six, both, four}) {
      SCOPED_TRACE(std::string(off) + " " + config);
      RoundTrip(config);
      const std::string eth0 = disabled("eth0");
      ASSERT_TRUE(Add({.config = config}));
      EXPECT_EQ(disabled("net1"), config == four ? "1" : "0");
      EXPECT_EQ(disabled("eth0"), eth0);
      EXPECT_EQ(disabled(off), "1");
      ASSERT_TRUE(Del({.config = config}));
    }
    const auto before = World();
    const auto own = Add({.config = six + R"(,"sysctl":{"net.ipv6.conf.IFNAME.disable_ipv6":"1"})"});
    EXPECT_FALSE(own) << "what the network itself sets stays";
    EXPECT_EQ(ChangedSince(before), "");
    ASSERT_TRUE(kernel_.WriteSysctls(ns, {{std::string("net/ipv6/conf/") + off + "/disable_ipv6", "0"}}));
  }
}

TEST_F(PluginAttachTest, TwoAddressesOfOneSubnetHaveOneConnectedRoute) {
  const std::string ipam =
      R"(,"ipam":{"type":"test-ipam","address":["10.100.0.10/24","fd00:100::10/64","10.100.0.11/24","fd00:100::11/64"]})";
  RoundTrip(Device() + ipam);
  ASSERT_TRUE(Add({.config = Device() + ipam}));
  std::multiset<std::string> connected;
  for (const Route& route : kernel_.state().Namespace(pod_)->routes) {
    if (route.table != kTableMain && !route.gateway) connected.insert(route.destination.ToString());
  }
  EXPECT_EQ(connected, (std::multiset<std::string>{"10.100.0.0/24", "fd00:100::/64"}));
}

// Every route field of CNI 1.1 reaches the kernel, the result and CHECK.
TEST_F(PluginAttachTest, RoutesOfTheIpamPluginAreTakenAsTheyAre) {
  const std::string ipam =
      R"(,"ipam":{"type":"test-ipam","address":"10.100.0.10/24","routes":[
        {"dst":"10.1.2.3/8","gw":"10.100.0.253","mtu":4200,"advmss":4000,"priority":10},
        {"dst":"10.0.0.0/8","gw":"10.100.0.252","priority":20},
        {"dst":"10.9.0.0/16","table":500,"scope":253}]})";
  const Call call{.config = Device() + ipam, .cni_version = "1.1.0"};
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  const auto& routes = kernel_.state().Namespace(pod_)->routes;
  const auto main_metrics = [&] {
    std::set<std::uint32_t> metrics;
    for (const Route& route : routes) {
      if (route.table == kTableMain && route.destination == *IpPrefix::Parse("10.0.0.0/8"))
        metrics.insert(route.metric);
    }
    return metrics;
  }();
  EXPECT_EQ(main_metrics, (std::set<std::uint32_t>{10, 20})) << "both, and the rail's own not beside them";
  EXPECT_TRUE(std::any_of(routes.begin(), routes.end(), [](const Route& route) {
    return route.table == kTableMain && route.metric == 10 && route.mtu == 4200 && route.advmss == 4000;
  }));
  EXPECT_TRUE(std::any_of(routes.begin(), routes.end(), [](const Route& route) {
    return route.table == 500 && route.scope == RouteScope::kLink && !route.gateway;
  }));
  for (const char* shown : {"\"mtu\": 4200", "\"advmss\": 4000", "\"scope\": 253", "\"table\": 500"})
    EXPECT_NE(added->find(shown), std::string::npos) << *added;
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
}

// Kubernetes has names of up to 253 characters.
TEST_F(PluginAttachTest, NetworksWithLongNames) {
  const auto before = World();
  for (const std::size_t size : {1U, 127U, 128U, 129U, 240U, 253U}) {
    SCOPED_TRACE(size);
    std::vector<Call> calls;
    for (int n = 0; n < 3; ++n) {
      std::string name(size, 'n');
      name.back() = static_cast<char>('a' + n);
      calls.push_back({.network = name, .ifname = "fifteen-chars-" + std::to_string(n), .config = Usual(n)});
      const auto added = Add(calls.back());
      ASSERT_TRUE(added) << Describe(added.error());
    }
    const auto scan = Journal(sysfs_.root()).Scan();
    ASSERT_TRUE(scan);
    ASSERT_EQ(scan->entries.size(), 3U);
    EXPECT_TRUE(scan->orphaned.empty());
    for (const Call& call : calls) {
      EXPECT_TRUE(Contains(scan->entries, AttachmentKey{call.network, call.container, call.ifname},
                           &JournalEntry::key));
      EXPECT_TRUE(Check(call));
      EXPECT_TRUE(Gc({{call.container, call.ifname}}, {.network = call.network, .config = call.config}));
      EXPECT_TRUE(Check(call));
    }
    for (const Call& call : calls) EXPECT_TRUE(Del(call));
    ASSERT_EQ(ChangedSince(before), "");
  }
}

TEST_F(PluginAttachTest, WholePf) {
  const auto none = kernel_.AddPf({.address = "0000:c3:00.0", .netdev = "pf2", .rdma = "mlx5_2"});
  RoundTrip(R"("deviceID":"0000:c3:00.0",)" + Ipam());
  RoundTrip(R"("deviceID":"0000:c3:00.0","mac":"02:aa:00:00:00:01","mtu":4200,)" + Ipam());
}

TEST_F(PluginAttachTest, VfThatWasUpComesBackUp) {
  kernel_.SetUp(kHost, "pf0v0", true);
  RoundTrip(Usual());
  EXPECT_TRUE(kernel_.state().Find(kHost, "pf0v0")->link.up);
}

TEST_F(PluginAttachTest, CheckFindsWhatChanged) {
  const Call call{.config = Usual() + R"(,"mtu":4200)"};
  ASSERT_TRUE(Add(call));
  const auto expect = [&](const std::string& words) {
    const auto checked = Check(call);
    ASSERT_FALSE(checked) << words;
    EXPECT_NE(Describe(checked.error()).find(words), std::string::npos) << Describe(checked.error());
  };
  FakeState& state = kernel_.state();
  VfSettings vlan;
  vlan.vlan = {{999, 0}};
  (void)state.SetVf(*state.Function("0000:43:00.0"), 0, vlan);
  expect("vlan is 999, QoS 0, should be 100");
  vlan.vlan = {{100, 3}};
  (void)state.SetVf(*state.Function("0000:43:00.0"), 0, vlan);
  ASSERT_TRUE(Check(call));
  auto& rules = state.Namespace(pod_)->rules;
  const auto saved = rules;
  std::erase_if(rules, [](const Rule& rule) { return rule.oif == "net1"; });
  expect("is missing");
  rules = saved;
  (void)state.DeleteAddress(*state.Find(pod_, "net1"), *IpPrefix::Parse("10.100.0.10/24"));
  expect("address 10.100.0.10/24 is missing");
}

TEST_F(PluginAttachTest, CheckOfNothing) {
  const auto checked = Check({.config = Usual()});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kNotFound);
}

TEST_F(PluginAttachTest, CheckAsksTheIpamPlugin) {
  const Call call{.config = Usual()};
  ASSERT_TRUE(Add(call));
  ASSERT_TRUE(Check(call));
  EXPECT_EQ(IpamCalls(), "ADD CHECK");
  FailIpam("CHECK");
  EXPECT_FALSE(Check(call));
}

}  // namespace
}  // namespace railhead::testing

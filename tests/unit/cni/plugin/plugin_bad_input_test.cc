// Bad input: ADD returns a CNI error that names the field and says what to do. It changes neither the kernel
// nor files.
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "cni/protocol/cni_result.h"
#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {
namespace {

class PluginBadInputTest : public PluginFixture {
 protected:
  // ADD fails with `code`, its message and hint contain `words`, nothing changed.
  void Refused(const Call& call, int code, const std::string& words) {
    SCOPED_TRACE(call.config);
    const auto before = World();
    const auto added = Add(call);
    ASSERT_FALSE(added);
    const std::string text = Describe(added.error());
    EXPECT_EQ(CniCodeOf(added.error().code), code) << text;
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_EQ(ChangedSince(before), "");
    EXPECT_TRUE(kernel_.announcements().empty());
  }
  void Refused(const std::string& fields, int code, const std::string& words) {
    Refused(Call{.config = fields}, code, words);
  }
};

TEST_F(PluginBadInputTest, Fields) {
  const auto field = [this](const std::string& text, const std::string& words) {
    Refused(Usual() + "," + text, kCniInvalidConfig, "network configuration: " + words);
  };
  field(R"("vlan":4095)", "/vlan: 4095 is out of range 0..4094");
  field(R"("vlan":-1)", "/vlan: -1");
  field(R"("vlan":"100")", "/vlan: is not an integer but string");
  field(R"("vlan":100.5)", "/vlan: is not an integer but a fraction");
  field(R"("vlanQoS":8)", "/vlanQoS: 8 is out of range 0..7");
  field(R"("vlan":0,"vlanQoS":1)", "/vlanQoS: needs a vlan");
  field(R"("max_tx_rate":-1)", "/max_tx_rate: -1");
  field(R"("min_tx_rate":-5)", "/min_tx_rate: -5");
  field(R"("min_tx_rate":10,"max_tx_rate":5)", "/min_tx_rate: is above max_tx_rate");
  field(R"("mac":"02:00:00:00:00")", "/mac: '02:00:00:00:00' is not a MAC address");
  field(R"("mac":"01:00:5e:00:00:01")", "/mac:");
  field(R"("mac":"00:00:00:00:00:00")", "/mac:");
  field(R"("runtimeConfig":{"mac":"x"})", "/runtimeConfig/mac:");
  field(R"("spoofchk":"yes")", "/spoofchk: 'yes' is not known; off or on");
  field(R"("trust":true)", "/trust: is not a string but boolean");
  field(R"("link_state":"up")", "/link_state: 'up' is not known; auto, enable or disable");
  field(R"("mtu":67)", "/mtu: 67");
  field(R"("mtu":65536)", "/mtu: 65536");
  field(R"("gateway":"10.0.0")", "/gateway: '10.0.0' is not an IP address");
  field(R"("routes":["10.0.0.1/8"])", "/routes/0: '10.0.0.1/8' is not a network prefix");
  field(R"("table":254)", "/table: 253, 254 and 255");
  field(R"("table":0)", "/table: 0");
  field(R"("linkTimeoutSeconds":-1)", "/linkTimeoutSeconds: -1");
  field(R"("ncclConfig":"yes")", "/ncclConfig: 'yes'");
  field(R"("softRoce":"on")", "/softRoce: is not true or false");
  field(R"("fabric":"fabric.json")", "/fabric: 'fabric.json' is not an absolute path");
  field(R"("rail":"rail7")", "/rail: rail 'rail7' does not exist");
  field(R"("vlna":100)", "/vlna: unknown field; did you mean 'vlan'?");
  field(R"("deviceId":"x")", "/deviceId: unknown field; did you mean 'deviceID'?");
  EXPECT_EQ(IpamCalls(), "") << "refused before IPAM was asked";
}

// Who can change them decides as root.
TEST_F(PluginBadInputTest, FilesThatOthersCanChange) {
  WriteFabric();
  WriteFileAt(sysfs_.directory() + "/etc/railhead/node-name", "node0\n");
  const std::string named = Device() + R"(,"ipam":{"type":"test_ipam"},"fabric":"/srv/fabric.json")";
  WriteFileAt(sysfs_.directory() + "/srv/fabric.json", File("/etc/railhead/fabric.json"));
  const auto open = [this](const std::string& path, mode_t mode, const std::string& config) {
    const std::string whole = sysfs_.directory() + path;
    const auto before = std::filesystem::status(whole).permissions();
    ASSERT_EQ(::chmod(whole.c_str(), mode), 0);
    Refused(config, kCniPermission, "chmod go-w " + whole);
    std::filesystem::permissions(whole, before);
  };
  open("/etc/railhead/fabric.json", 0664, Usual());
  open("/etc/railhead/fabric.json", 0646, Usual());
  open("/etc/railhead", 0777, Usual());
  open("/srv/fabric.json", 0666, named);
  EXPECT_EQ(IpamCalls(), "") << "refused before IPAM was asked";
  EXPECT_TRUE(Add({.config = Usual()}));
}

TEST_F(PluginBadInputTest, MacOfArguments) {
  Refused(Call{.config = Usual(), .args = "MAC=nonsense"}, kCniInvalidConfig, "CNI_ARGS MAC");
}

TEST_F(PluginBadInputTest, Ipam) {
  Refused(Device() + R"(,"ipam":"static")", kCniInvalidConfig, "/ipam: is not an object");
  Refused(Device() + R"(,"ipam":{"x":1})", kCniInvalidConfig, "/ipam/type: is required");
  Refused(Device() + R"(,"ipam":{"type":"absent"})", kCniNotFound, "plugin 'absent' is not in CNI_PATH");
  Refused(Device() + R"(,"ipam":{"type":"../x"})", kCniInvalidConfig, "is not a plugin name");
}

TEST_F(PluginBadInputTest, Devices) {
  Refused(Ipam(), kCniInvalidConfig, "/deviceID: no device is given");
  Refused(R"("deviceID":"eth0",)" + Ipam(), kCniInvalidConfig, "/deviceID: 'eth0' is not a PCI address");
  Refused(R"("deviceID":"0000:43:1f.9",)" + Ipam(), kCniInvalidConfig, "is not a PCI address");
  Refused(R"("deviceID":"0000:99:00.0",)" + Ipam(), kCniNotFound, "does not exist on this node");
  Refused(R"("deviceID":"0000:43:00.0",)" + Ipam(), kCniInvalidConfig, "is a PF with 4 VFs");
  Refused(R"("deviceID":7,)" + Ipam(), kCniInvalidConfig, "/deviceID: is not a string");
}

TEST_F(PluginBadInputTest, DeviceOfAnotherPod) {
  ASSERT_TRUE(Add({.config = Usual()}));
  const std::string other = MakePod("pod2");
  const auto before = World();
  const auto added = Add({.container = "c2", .netns = other, .config = Usual()});
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniTryAgainLater);
  EXPECT_NE(added.error().message.find("c1"), std::string::npos) << added.error().message;
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginBadInputTest, DeviceInANamespaceThatIsNotOurs) {
  (void)kernel_.state().Move(*kernel_.state().Find(kHost, "pf0v0"), pod_, "foreign", {});
  kernel_.Sync();
  Refused(Usual(), kCniTryAgainLater, "has no network interface in the host's namespace");
}

TEST_F(PluginBadInputTest, DeviceThatTheHostUses) {
  kernel_.AddAddress(kHost, "pf0v0", "192.0.2.1/24");
  Refused(Usual(), kCniInvalidConfig, "carries the host's address 192.0.2.1/24");
}

// What the kernel made of a router advertisement, which every pod on the network can send, is no use.
TEST_F(PluginBadInputTest, DeviceOnANetworkWhereARouterAdvertises) {
  kernel_.SetUp(kHost, "pf0v0", true);
  kernel_.SetUp(kHost, "pf1", true);
  kernel_.AddAddress(kHost, "pf1", "192.0.2.10/24");
  kernel_.AddDefaultRoute(kHost, "pf1", "192.0.2.254");
  FakeNetdev& vf = *kernel_.state().Find(kHost, "pf0v0");
  const IpPrefix prefix = *IpPrefix::Parse("2001:db8::7/64");
  ASSERT_EQ(kernel_.state().AddAddress(vf, prefix), 0);
  vf.address_flags[prefix].flags = IFA_F_MANAGETEMPADDR;
  Route advertised;
  advertised.destination = *IpPrefix::Parse("::/0");
  advertised.link = vf.link.index;
  advertised.metric = 1024;
  advertised.protocol = RTPROT_RA;
  kernel_.state().Namespace(kHost)->routes.push_back(advertised);
  WriteFileAt(sysfs_.directory() + "/etc/railhead/node-address", "2001:db8::7\n");
  Refused(Usual(), kCniInvalidConfig, "carries the node's address 2001:db8::7/64");
  WriteFileAt(sysfs_.directory() + "/etc/railhead/node-address", "192.0.2.10\n");
  EXPECT_TRUE(Add({.config = Usual()}));
}

// A manager that hands out addresses by DHCP takes every VF that it may.
TEST_F(PluginBadInputTest, DeviceOfANetworkManager) {
  kernel_.AddAddress(kHost, "pf0v0", "192.0.2.1/24");
  FakeNetdev& vf = *kernel_.state().Find(kHost, "pf0v0");
  vf.address_flags[*IpPrefix::Parse("192.0.2.1/24")].flags = 0;
  Refused(Usual(), kCniInvalidConfig, "192.0.2.1/24 of DHCP or a network manager");
  WriteFileAt(sysfs_.directory() + "/run/systemd/netif/links/" + std::to_string(vf.link.index),
              "ADMIN_STATE=configured\n");
  const auto added = Add({.config = Usual()});
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().hint.rfind("systemd-networkd manages pf0v0", 0), 0U) << added.error().hint;
}

// The default route of the host, alone or as one of several next hops.
TEST_F(PluginBadInputTest, DeviceThatCarriesTheDefaultRoute) {
  kernel_.SetUp(kHost, "pf0v0", true);
  Route route;
  route.destination = *IpPrefix::Parse("0.0.0.0/0");
  auto& routes = kernel_.state().Namespace(kHost)->routes;
  route.link = kernel_.state().Find(kHost, "pf0v0")->link.index;
  routes.push_back(route);
  Refused(Usual(), kCniInvalidConfig, "carries the host's default route");
  routes.back().multipath = {kernel_.state().Find(kHost, "pf1")->link.index, route.link};
  routes.back().link = 0;
  Refused(Usual(), kCniInvalidConfig, "carries the host's default route");
  routes.back().destination = *IpPrefix::Parse("::/0");
  Refused(Usual(), kCniInvalidConfig, "carries the host's default route");
  routes.back().multipath.pop_back();
  EXPECT_TRUE(Add({.config = Usual()})) << "of another device";
}

// An IPv4 link-local address was set by somebody. Every IPv6 link has one.
TEST_F(PluginBadInputTest, DeviceThatTheHostUsesWithoutAnAddressOfASubnet) {
  kernel_.SetUp(kHost, "pf0v0", true);
  kernel_.AddAddress(kHost, "pf0v0", "169.254.7.1/16");
  Refused(Usual(), kCniInvalidConfig, "carries the host's address 169.254.7.1/16");
  (void)kernel_.state().DeleteAddress(*kernel_.state().Find(kHost, "pf0v0"),
                                      *IpPrefix::Parse("169.254.7.1/16"));

  FakeNamespace& host = *kernel_.state().Namespace(kHost);
  const int link = kernel_.state().Find(kHost, "pf0v0")->link.index;
  for (const char* destination : {"10.9.0.0/16", "fd00:9::/64", "192.0.2.7/32"}) {
    for (const std::uint32_t table : {0U, 254U, 100U, 70'000U}) {
      Route route;
      route.destination = *IpPrefix::Parse(destination);
      route.link = link;
      route.table = table;
      host.routes.push_back(route);
      Refused(Usual(), kCniInvalidConfig, std::string("carries the host's route ") + destination);
      host.routes.pop_back();
    }
  }
  for (std::string Rule::*name : {&Rule::iif, &Rule::oif}) {
    Rule rule;
    rule.family = AF_INET;
    rule.*name = "pf0v0";
    rule.table = 100;
    host.rules.push_back(rule);
    Refused(Usual(), kCniInvalidConfig, "is in the host's rule");
    host.rules.back().*name = "pf1";
  }
  EXPECT_TRUE(Add({.config = Usual()})) << "rules of another device";
}

// The move would destroy it.
TEST_F(PluginBadInputTest, DeviceUnderAnInterfaceOfTheHost) {
  sysfs_.AddVirtualNetdev("pf0v0.7");
  sysfs_.AddUpper("pf0v0", "pf0v0.7");
  Refused(Usual(), kCniInvalidConfig, "has pf0v0.7 of the host on top");
}

TEST_F(PluginBadInputTest, Namespace) {
  Refused(Call{.netns = "/nowhere", .config = Usual()}, kCniInvalidNetns, "/nowhere");
  WriteFileAt(sysfs_.directory() + "/empty", "");
  Refused(Call{.netns = sysfs_.directory() + "/empty", .config = Usual()}, kCniInvalidNetns, "/empty");
  Refused(Call{.netns = sysfs_.directory() + "/host.netns", .config = Usual()}, kCniInvalidNetns,
          "is the plugin's own namespace");
}

TEST_F(PluginBadInputTest, InterfaceNameTaken) {
  Refused(Call{.ifname = "eth0", .config = Usual()}, kCniExists, "interface eth0 exists already");
}

TEST_F(PluginBadInputTest, SameAttachmentTwice) {
  ASSERT_TRUE(Add({.config = Usual()}));
  const auto before = World();
  EXPECT_EQ(Add({.config = Usual()}).error().code, ErrorCode::kExists);
  EXPECT_EQ(Add({.config = Usual(1)}).error().code, ErrorCode::kExists) << "with another device";
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginBadInputTest, SubnetExhausted) {
  FailIpam("ADD");
  Refused(Usual(), kCniExhausted, "no address left in the range");
  EXPECT_EQ(IpamCalls(), "ADD DEL") << "the specification asks for a DEL after a failed ADD";
}

// The IPAM plugin (of an older CNI version) understands the configuration neither at ADD nor at DEL. The
// device must not be stuck for that.
TEST_F(PluginBadInputTest, IpamThatRefusesEveryVerb) {
  FailIpam("ADD");
  WriteFileAt(programs_.directory() + "/ipam.fail-DEL", "");
  EXPECT_FALSE(Add({.config = Usual()}));
  EXPECT_EQ(IpamCalls(), "ADD DEL");
  EXPECT_EQ(Files(), "") << "no entry is left that nobody could ever finish";
  FailIpam("");
  EXPECT_TRUE(Add({.config = Usual()}));
}

TEST_F(PluginBadInputTest, IpamResults) {
  Refused(Device() + R"(,"ipam":{"type":"test-ipam"})", kCniInvalidConfig, "gave no address");
  Refused(Device() + "," + Ipam("10.100.0.300/24"), kCniInvalidConfig, "result of test-ipam");
  Refused(Device() + R"(,"ipam":{"type":"test-ipam","address":"10.100.0.9/24","gateway":"10.101.0.1"})",
          kCniInvalidConfig, "gateway 10.101.0.1 is outside the subnet 10.100.0.0/24");
  EXPECT_EQ(IpamCalls(), "ADD DEL ADD DEL ADD DEL") << "what was allocated is released";
}

TEST_F(PluginBadInputTest, Gateway) {
  Refused(Usual() + R"(,"gateway":"10.101.0.1")", kCniInvalidConfig,
          "gateway 10.101.0.1 is outside the subnet");
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
              R"({"version":1,"rails":[{"name":"rail0","pf":"pf0"}]})");
  Refused(Usual() + R"(,"routes":["10.0.0.0/8"])", kCniInvalidConfig, "route 10.0.0.0/8 has no gateway");
}

TEST_F(PluginBadInputTest, BrokenFabric) {
  const auto fabric = [this](const std::string& text, int code, const std::string& words) {
    WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json", text);
    Refused(Usual(), code, "/etc/railhead/fabric.json: " + words);
  };
  fabric("{", kCniDecode, "no valid JSON");
  fabric(R"({"version":1,"rails":[{"name":"a","pf":"p","vlan":4095}]})", kCniInvalidConfig,
         "/rails/0/vlan: 4095");
  fabric(R"({"version":1,"rails":[{"name":"a","pf":"p","subnet":"10.0.0.0/24","gateway":"10.1.0.1"}]})",
         kCniInvalidConfig, "/rails/0/gateway: 10.1.0.1 is outside the subnet");
}

TEST_F(PluginBadInputTest, WhatTheDriverRefuses) {
  kernel_.state().Function("0000:43:00.0")->driver.min_tx_rate = false;
  kernel_.state().Function("0000:43:00.0")->driver.link_state = false;
  Refused(Usual() + R"(,"min_tx_rate":10)", kCniInvalidConfig, "setting VF 0 of pf0");
  Refused(Usual() + R"(,"link_state":"enable")", kCniUnsupported, "setting VF 0 of pf0");
  kernel_.state().OfFunction("0000:43:00.0")->link.mtu = 20000;
  Refused(Usual() + R"(,"mtu":20000)", kCniInvalidConfig, "with MTU 20000");
}

// Of a network and of a rail, before anything is touched.
TEST_F(PluginBadInputTest, AnMtuAboveThatOfThePf) {
  kernel_.state().OfFunction("0000:43:00.0")->link.mtu = 4200;
  const std::string above = "4201 is above the MTU 4200 of PF pf0";
  Refused(Usual() + R"(,"mtu":4201)", kCniInvalidConfig, "network configuration: /mtu: " + above);
  WriteFabric(R"(,"mtu":4201)");
  Refused(Usual(), kCniInvalidConfig, "rail 'rail0': mtu " + above);
  EXPECT_EQ(IpamCalls(), "");
  for (const char* own : {R"(,"mtu":4200)", R"(,"mtu":1400)"}) {
    ASSERT_TRUE(Add({.config = Usual() + own})) << "the network's own beats the rail's";
    ASSERT_TRUE(Del({.config = Usual()}));
  }
  ASSERT_TRUE(Add({.network = "rail1", .config = Usual(0, 1)})) << "the MTU of its PF is 9000";
}

TEST_F(PluginBadInputTest, NoCarrier) {
  kernel_.state().Find(kHost, "pf0")->wire = false;
  kernel_.Sync();
  Refused(Usual() + R"(,"linkTimeoutSeconds":0)", kCniTryAgainLater, "has no carrier");
  kernel_.SetUp(kHost, "pf0", false);
  Refused(Usual() + R"(,"linkTimeoutSeconds":0)", kCniTryAgainLater, "the PF pf0 is down");
}

// The VLAN comes from the rail, the network or both. A PF cannot get a VLAN, so ADD reports that and changes
// nothing.
TEST_F(PluginBadInputTest, APfWithAVlan) {
  const std::string pf = "0000:e3:00.0";
  kernel_.AddPf({.address = pf, .netdev = "pf9"}, {});
  for (const char* of_rail : {"", R"(,"vlan":0)", R"(,"vlan":7)", R"(,"vlan":7,"vlanQoS":3)"}) {
    WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
                R"({"version":1,"rails":[{"name":"rail9","pf":"pf9")" + std::string(of_rail) + "}]}");
    for (const char* of_network : {"", R"(,"vlan":0)", R"(,"vlan":9)"}) {
      const Call call{.config = R"("ncclConfig":"off","ipam":{},"deviceID":")" + pf + "\"" + of_network};
      const bool by_rail = std::string_view(of_rail).find(":7") != std::string_view::npos;
      const std::string_view network = of_network;
      if (network.ends_with("9") || (network.empty() && by_rail)) {
        Refused(call, kCniInvalidConfig, network.empty() ? "rail 'rail9' has VLAN 7" : "is a PF: vlan");
        continue;
      }
      const auto added = Add(call);
      EXPECT_TRUE(added) << of_rail << of_network << Describe(added.error());
      EXPECT_TRUE(Del(call));
    }
  }
}

}  // namespace
}  // namespace railhead::testing

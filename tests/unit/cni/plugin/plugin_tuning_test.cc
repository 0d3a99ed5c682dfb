// The settings for which `tuning` and similar plugins are chained: ADD applies them, CHECK checks them, DEL
// restores them. And alternative names, which can prevent a rename.
#include <algorithm>

#include "cni/protocol/cni_result.h"
#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {
namespace {

using Names = std::vector<std::string>;

class PluginTuningTest : public PluginFixture {
 protected:
  FakeNetdev& HostNetdev(const std::string& name = "pf0v0") { return *kernel_.state().Find(kHost, name); }
  FakeNetdev& PodNetdev() { return *kernel_.state().Find(pod_, "net1"); }
  std::string Sysctl(const std::string& path) {
    return kernel_.state().ReadSysctl(pod_, path).value_or("(absent)");
  }
  void Refused(const std::string& fields, int code, const std::string& words) {
    SCOPED_TRACE(fields);
    const auto before = World();
    const auto added = Add({.config = Usual() + "," + fields});
    ASSERT_FALSE(added);
    EXPECT_EQ(CniCodeOf(added.error().code), code) << Describe(added.error());
    EXPECT_NE(Describe(added.error()).find(words), std::string::npos) << Describe(added.error());
    EXPECT_EQ(ChangedSince(before), "");
  }
  // ADD, CHECK, DEL of `call` leave the host as it is.
  void RoundTrip(const Call& call) {
    const auto before = World();
    const auto added = Add(call);
    ASSERT_TRUE(added) << Describe(added.error());
    const auto checked = Check(call);
    EXPECT_TRUE(checked) << Describe(checked.error());
    const auto deleted = Del(call);
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    EXPECT_EQ(ChangedSince(before), "");
  }
};

constexpr const char* kTuning =
    R"(,"mtu":4200,"txQLen":2000,"promisc":true,"allmulti":true,"alias":"rail 0 of job 7",
       "altNames":["roce0","a.name-longer-than-fifteen"],
       "sysctl":{"net.ipv4.conf.IFNAME.arp_filter":"1","net/ipv4/conf/IFNAME/arp_ignore":"2"})";

TEST_F(PluginTuningTest, AppliedAndCheckedAndPutBack) {
  const Call call{.config = Usual() + kTuning};
  const auto before = World();
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  const Link link = PodLink();
  EXPECT_EQ(link.mtu, 4200);
  EXPECT_EQ(link.tx_queue_len, 2000);
  EXPECT_TRUE(link.promiscuous);
  EXPECT_TRUE(link.all_multicast);
  EXPECT_EQ(link.alias, "rail 0 of job 7");
  EXPECT_EQ(link.alt_names, (Names{"roce0", "a.name-longer-than-fifteen"}));
  EXPECT_EQ(Sysctl("net/ipv4/conf/net1/arp_filter"), "1");
  EXPECT_EQ(Sysctl("net/ipv4/conf/net1/arp_ignore"), "2") << "what is configured beats our own";
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(ChangedSince(before), "");
}

// From and to other values than the kernel's own.
TEST_F(PluginTuningTest, PutBackToWhatWasThere) {
  FakeNetdev& netdev = HostNetdev();
  netdev.link.alias = "spare";
  netdev.link.tx_queue_len = 500;
  netdev.link.promiscuous = true;
  netdev.link.all_multicast = true;
  netdev.link.mtu = 9000;
  RoundTrip({.config = Usual() + kTuning});
  RoundTrip({.config = Usual() + R"(,"promisc":false,"allmulti":false,"alias":"","txQLen":0)"});
  RoundTrip({.config = Usual()});
}

TEST_F(PluginTuningTest, WithoutTheFieldNothingIsTouched) {
  FakeNetdev& netdev = HostNetdev();
  netdev.link.alias = "spare";
  netdev.link.tx_queue_len = 500;
  netdev.link.promiscuous = true;
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_EQ(PodLink().alias, "spare");
  EXPECT_EQ(PodLink().tx_queue_len, 500);
  EXPECT_TRUE(PodLink().promiscuous);
}

TEST_F(PluginTuningTest, CheckNamesEachThatIsBroken) {
  const Call call{.config = Usual() + kTuning};
  ASSERT_TRUE(Add(call));
  const auto broken = [&](const std::string& words, const LinkChange& change, const LinkChange& repair) {
    ASSERT_EQ(kernel_.state().Change(PodNetdev(), change), 0);
    const auto checked = Check(call);
    ASSERT_FALSE(checked) << words;
    EXPECT_EQ(CniCodeOf(checked.error().code), kCniConflict);
    EXPECT_NE(checked.error().message.find(words), std::string::npos) << checked.error().message;
    ASSERT_EQ(kernel_.state().Change(PodNetdev(), repair), 0);
    EXPECT_TRUE(Check(call)) << words;
  };
  broken("mtu is 1400, should be 4200", {{.mtu = 1400}}, {{.mtu = 4200}});
  broken("txQLen is 1, should be 2000", {{.tx_queue_len = 1}}, {{.tx_queue_len = 2000}});
  broken("promisc is off, should be on", {{.promiscuous = false}}, {{.promiscuous = true}});
  broken("allmulti is off, should be on", {{.all_multicast = false}}, {{.all_multicast = true}});
  broken("alias is 'x', should be 'rail 0 of job 7'", {{.alias = "x"}}, {{.alias = "rail 0 of job 7"}});
  broken("sysctl net/ipv4/conf/net1/arp_filter is 0, should be 1", {.ipv4 = {{Ipv4Conf::kArpFilter, 0}}},
         {.ipv4 = {{Ipv4Conf::kArpFilter, 1}}});
  broken("sysctl net/ipv4/conf/net1/arp_ignore is 1, should be 2", {.ipv4 = {{Ipv4Conf::kArpIgnore, 1}}},
         {.ipv4 = {{Ipv4Conf::kArpIgnore, 2}}});
  broken("sysctl net/ipv4/conf/net1/arp_announce is 0, should be 2", {.ipv4 = {{Ipv4Conf::kArpAnnounce, 0}}},
         {.ipv4 = {{Ipv4Conf::kArpAnnounce, 2}}});
  broken("sysctl net/ipv4/conf/net1/rp_filter is 1, should be 2", {.ipv4 = {{Ipv4Conf::kRpFilter, 1}}},
         {.ipv4 = {{Ipv4Conf::kRpFilter, 2}}});
  ASSERT_EQ(kernel_.state().DeleteAltName(PodNetdev(), "roce0"), 0);
  const auto checked = Check(call);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("has lost its alternative name roce0"), std::string::npos);
}

TEST_F(PluginTuningTest, SysctlsOfNetworkNamespacesOnly) {
  for (const char* name : {"kernel.hostname", "net", "net.", "../net/x", "net/../kernel/hostname",
                           "/net/core", "vm/swappiness", "net//core"}) {
    Refused(R"("sysctl":{")" + std::string(name) + R"(":"1"})", kCniInvalidConfig, "/sysctl/");
  }
  Refused(R"("sysctl":{"net.ipv4.conf.IFNAME.arp_filter":1})", kCniInvalidConfig, "is not a string");
  Refused(R"("sysctl":{"net.ipv4.conf.IFNAME.no_such":"1"})", kCniNotFound, "no_such");
  Refused(R"("sysctl":{"net.ipv4.conf.IFNAME.arp_filter":"many"})", kCniInvalidConfig, "arp_filter");
}

// With dots, with slashes, of all, and of an interface with a dot in its name, which is
// what the slashes are for.
TEST_F(PluginTuningTest, SysctlNames) {
  const Call call{.ifname = "net1.5",
                  .config = Usual() + R"(,"sysctl":{"net.ipv4.tcp_rmem":"4096 65536 1000000",
                      "net/core/somaxconn":"8192","net.ipv4.conf.IFNAME.log_martians":"1",
                      "net/ipv6/conf/IFNAME/accept_ra":"0","net/ipv4/conf/all/proxy_arp":"1"})"};
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(Sysctl("net/ipv4/conf/net1.5/log_martians"), "1");
  EXPECT_EQ(Sysctl("net/ipv6/conf/net1.5/accept_ra"), "0");
  EXPECT_EQ(Sysctl("net/core/somaxconn"), "8192");
  EXPECT_EQ(Sysctl("net/ipv4/conf/all/proxy_arp"), "1");
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
  EXPECT_TRUE(Del(call));
}

// Otherwise a switch's advertisement gives the pod a default route through the rail. CHECK asks only for what
// the network requests: pods of older versions have the kernel's value.
TEST_F(PluginTuningTest, RouterAdvertisementsAreIgnored) {
  const std::string path = "net/ipv6/conf/net1/accept_ra";
  const Call plain{.config = Usual()};
  ASSERT_TRUE(Add(plain));
  EXPECT_EQ(Sysctl(path), "0");
  ASSERT_TRUE(kernel_.WriteSysctls(kernel_.OpenNetns(pod_).value(), {{path, "1"}}));
  EXPECT_TRUE(Check(plain));
  ASSERT_TRUE(Del(plain));

  const Call other{.config = Usual() + R"(,"sysctl":{"net/ipv6/conf/IFNAME/accept_ra":"2"})"};
  ASSERT_TRUE(Add(other));
  EXPECT_EQ(Sysctl(path), "2");
}

TEST_F(PluginTuningTest, FieldsThatAreNone) {
  Refused(R"("altNames":["a/b"])", kCniInvalidConfig, "/altNames/0: 'a/b' is not an interface name");
  Refused(R"("altNames":[""])", kCniInvalidConfig, "/altNames/0:");
  Refused(R"("altNames":[")" + std::string(128, 'x') + "\"]", kCniInvalidConfig, "/altNames/0:");
  Refused(R"("alias":")" + std::string(256, 'x') + "\"", kCniInvalidConfig, "/alias: is longer");
  Refused(R"("txQLen":-1)", kCniInvalidConfig, "/txQLen: -1");
  Refused(R"("promisc":"on")", kCniInvalidConfig, "/promisc: is not true or false");
  Refused(R"("altNames":["eth0"])", kCniExists, "alternative name eth0");
}

// udev gives alternative names to every NIC: they move along and are restored.
TEST_F(PluginTuningTest, AlternativeNamesOfTheHostAreRestored) {
  ASSERT_EQ(kernel_.state().AddAltName(HostNetdev(), "enp67s16"), 0);
  ASSERT_EQ(kernel_.state().AddAltName(HostNetdev(), "enxf00ba7000001"), 0);
  RoundTrip({.config = Usual()});
  RoundTrip({.config = Usual() + R"(,"altNames":["roce0"])"});
  RoundTrip({.config = Usual() + R"(,"altNames":["enp67s16"])"});
}

// sriov-cni #250: after a rename udev makes the name of before an alternative one, which
// then refuses the way back under it for ever.
TEST_F(PluginTuningTest, HostNameBecameAnAlternativeName) {
  const auto before = World();
  const Call call{.config = Usual()};
  ASSERT_TRUE(Add(call));
  ASSERT_EQ(kernel_.state().AddAltName(PodNetdev(), "pf0v0"), 0);
  const auto deleted = Del(call);
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(ChangedSince(before), "");
}

// The same on the host: the namespace died, and udev was faster than we.
TEST_F(PluginTuningTest, HostNameBecameAnAlternativeNameOnTheHost) {
  ASSERT_TRUE(Add({.config = Usual()}));
  kernel_.RemoveNamespace(pod_);
  ASSERT_EQ(kernel_.state().AddAltName(HostNetdev("net1"), "pf0v0"), 0);
  const auto deleted = Del({.config = Usual()});
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(HostNetdev("pf0v0").link.name, "pf0v0");
}

// sriov-cni #445: the name is another device's alternative name by now. The VF is restored
// under another one, and the pod is not stuck.
TEST_F(PluginTuningTest, HostNameTakenMeanwhile) {
  for (const bool as_alternative : {true, false}) {
    ASSERT_TRUE(Add({.config = Usual()}));
    FakeNetdev& other = HostNetdev("pf0v1");
    ASSERT_EQ(as_alternative ? kernel_.state().AddAltName(other, "pf0v0")
                             : kernel_.state().Change(other, {.name = "pf0v0"}),
              0);
    kernel_.Sync();
    const auto deleted = Del({.config = Usual()});
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    EXPECT_EQ(kernel_.state().OfFunction(vfs_[0][0])->ns, kHost);
    std::string by_address = "rh" + vfs_[0][0];
    std::erase_if(by_address, [](char c) { return c == ':' || c == '.'; });
    EXPECT_EQ(kernel_.state().OfFunction(vfs_[0][0])->link.name, by_address);
    FakeNetdev& again = *kernel_.state().OfFunction(vfs_[0][1]);
    if (as_alternative) {
      ASSERT_EQ(kernel_.state().DeleteAltName(again, "pf0v0"), 0);
    } else {
      ASSERT_EQ(kernel_.state().Change(again, {.name = "pf0v1"}), 0);
    }
    ASSERT_EQ(kernel_.state().Change(*kernel_.state().OfFunction(vfs_[0][0]), {.name = "pf0v0"}), 0);
    kernel_.Sync();
  }
}

// Not only by a NIC: any interface can have it.
TEST_F(PluginTuningTest, HostNameTakenByAVirtualInterface) {
  ASSERT_TRUE(Add({.config = Usual()}));
  kernel_.AddVeth(kHost, "pf0v0", kHost, "peer");
  const auto deleted = Del({.config = Usual()});
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(kernel_.state().OfFunction(vfs_[0][0])->ns, kHost);
  EXPECT_EQ(HostNetdev("pf0v0").link.kind, "veth") << "not ours, not touched";
}

// Another interface of the host now has an alternative name of the VF. With this name the kernel would refuse
// the whole move.
TEST_F(PluginTuningTest, AlternativeNameTakenMeanwhile) {
  ASSERT_EQ(kernel_.state().AddAltName(HostNetdev(), "enp67s16"), 0);
  ASSERT_TRUE(Add({.config = Usual()}));
  ASSERT_EQ(kernel_.state().AddAltName(HostNetdev("pf0v1"), "enp67s16"), 0);
  const auto deleted = Del({.config = Usual()});
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(HostNetdev("pf0v0").link.parent_device, vfs_[0][0]);
  EXPECT_EQ(HostNetdev("enp67s16").link.name, "pf0v1") << "whose it is now";
}

// The name that it shall have in the pod is its own alternative name on the host.
TEST_F(PluginTuningTest, PodNameIsItsAlternativeName) {
  ASSERT_EQ(kernel_.state().AddAltName(HostNetdev(), "net1"), 0);
  RoundTrip({.config = Usual()});
}

// The pod has something of that name: the kernel would refuse the whole move.
TEST_F(PluginTuningTest, AlternativeNameThatThePodHas) {
  ASSERT_EQ(kernel_.state().AddAltName(HostNetdev(), "eth0"), 0);
  ASSERT_NE(kernel_.state().Find(pod_, "eth0"), nullptr);
  RoundTrip({.config = Usual()});
}

}  // namespace
}  // namespace railhead::testing

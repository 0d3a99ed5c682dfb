// Link settings, alternative names and sysctls of the fake, as tests/namespace/netns/ sees them on
// the real kernel (link_test.cc, sysctl_test.cc).
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>

#include "tests/support/fake_kernel/fake_kernel.h"

namespace railhead::testing {
namespace {

using Names = std::vector<std::string>;
using Values = std::vector<std::optional<std::string>>;

constexpr const char* kPf = "0000:43:00.0";

class FakeSettingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    kernel_.AddPf({.address = kPf, .netdev = "pf0", .rdma = "mlx5_0"}, {.count = 2});
    pod_ = kernel_.AddNamespace("pod");
    index_ = Find(kHost, "pf0v0").index;
  }
  std::unique_ptr<RouteApi> Route(const std::string& path) { return std::move(*kernel_.OpenRoute(Ns(path))); }
  NetNs Ns(const std::string& path) {
    return path == kHost ? std::move(*kernel_.HostNetns()) : std::move(*kernel_.OpenNetns(path));
  }
  Link Find(const std::string& ns, const std::string& name) { return Route(ns)->FindLink(name)->value(); }
  int ChangeError(const LinkChange& change) {
    const auto done = Route(kHost)->ChangeLink(index_, change);
    return done ? 0 : done.error().sys_errno;
  }
  Values Read(const std::string& ns, const std::vector<std::string>& paths) {
    return kernel_.ReadSysctls(Ns(ns), paths).value();
  }

  FakeSysfs sysfs_;
  FakeKernel kernel_{sysfs_};
  std::string pod_;
  int index_ = 0;
};

TEST_F(FakeSettingsTest, SettingsOutliveAMoveAndShowInTheSnapshot) {
  const std::string before = kernel_.Snapshot();
  LinkChange change;
  change.alias = "rail0";
  change.tx_queue_len = 77;
  change.promiscuous = true;
  change.all_multicast = true;
  for (int part = 0; part < 4; ++part) {
    LinkChange one;
    if (part == 0) one.alias = change.alias;
    if (part == 1) one.tx_queue_len = change.tx_queue_len;
    if (part == 2) one.promiscuous = true;
    if (part == 3) one.all_multicast = true;
    const std::string previous = kernel_.Snapshot();
    EXPECT_EQ(ChangeError(one), 0);
    EXPECT_NE(kernel_.Snapshot(), previous) << part;
  }
  ASSERT_TRUE(Route(kHost)->MoveLink(index_, Ns(pod_), "net1", {}));
  const Link moved = Find(pod_, "net1");
  EXPECT_EQ(moved.alias, "rail0");
  EXPECT_EQ(moved.tx_queue_len, 77);
  EXPECT_TRUE(moved.promiscuous && moved.all_multicast);
  ASSERT_TRUE(Route(pod_)->MoveLink(moved.index, Ns(kHost), "pf0v0", {}));
  index_ = Find(kHost, "pf0v0").index;
  change.alias = "";
  change.tx_queue_len = 1000;
  change.promiscuous = false;
  change.all_multicast = false;
  EXPECT_EQ(ChangeError(change), 0);
  EXPECT_EQ(kernel_.Snapshot(), before);
  change.alias = std::string(256, 'x');
  EXPECT_EQ(ChangeError(change), ERANGE);
}

TEST_F(FakeSettingsTest, AlternativeNamesAreNames) {
  const std::string before = kernel_.Snapshot();
  auto route = Route(kHost);
  ASSERT_TRUE(route->AddAltName(index_, "rail0"));
  EXPECT_NE(kernel_.Snapshot(), before);
  EXPECT_EQ(Find(kHost, "rail0").index, index_);
  EXPECT_EQ(Find(kHost, "rail0").alt_names, Names{"rail0"});
  const int other = Find(kHost, "pf0v1").index;
  EXPECT_EQ(route->AddAltName(other, "rail0").error().code, ErrorCode::kExists);
  EXPECT_EQ(route->AddAltName(other, "pf0").error().code, ErrorCode::kExists);
  EXPECT_EQ(route->AddAltName(other, std::string(128, 'x')).error().sys_errno, ERANGE);
  EXPECT_EQ(route->AddAltName(4242, "x").error().code, ErrorCode::kNotFound);
  LinkChange rename;
  rename.name = "rail0";
  EXPECT_EQ(ChangeError(rename), EEXIST) << "also its own";
  EXPECT_FALSE(*route->DeleteAltName(other, "rail0")) << "another link's";
  EXPECT_FALSE(*route->DeleteAltName(index_, "pf0v0")) << "its first name";
  EXPECT_TRUE(*route->DeleteAltName(index_, "rail0"));
  EXPECT_FALSE(*route->DeleteAltName(index_, "rail0"));
  EXPECT_EQ(kernel_.Snapshot(), before);
}

TEST_F(FakeSettingsTest, AMoveIsRefusedWholeWhereAnAlternativeNameIsTaken) {
  kernel_.AddVeth(pod_, "eth0", kHost, "veth0");
  ASSERT_TRUE(Route(kHost)->AddAltName(index_, "rail0"));
  ASSERT_TRUE(Route(pod_)->AddAltName(Find(pod_, "eth0").index, "rail0"));
  const std::string before = kernel_.Snapshot();
  EXPECT_EQ(Route(kHost)->MoveLink(index_, Ns(pod_), "net1", 1400).error().code, ErrorCode::kExists);
  EXPECT_EQ(kernel_.Snapshot(), before);
  ASSERT_TRUE(Route(pod_)->DeleteAltName(Find(pod_, "eth0").index, "rail0"));
  ASSERT_TRUE(Route(kHost)->MoveLink(index_, Ns(pod_), "net1", {}));
  EXPECT_EQ(Find(pod_, "rail0").name, "net1");
  EXPECT_FALSE(Route(kHost)->FindLink("rail0")->has_value());
}

TEST_F(FakeSettingsTest, ANamespaceThatDiesDropsClashingNames) {
  ASSERT_TRUE(Route(kHost)->AddAltName(index_, "rail0"));
  ASSERT_TRUE(Route(kHost)->AddAltName(index_, "first"));
  ASSERT_TRUE(Route(kHost)->MoveLink(index_, Ns(pod_), "net1", {}));
  ASSERT_TRUE(Route(kHost)->AddAltName(Find(kHost, "pf0v1").index, "rail0"));
  kernel_.RemoveNamespace(pod_);
  EXPECT_EQ(Find(kHost, "net1").alt_names, Names{"first"});
  EXPECT_EQ(Find(kHost, "rail0").name, "pf0v1");
}

TEST_F(FakeSettingsTest, SysctlsAreOfTheNamespaceAndOfTheLinkInIt) {
  const std::string ignore = "net/ipv4/conf/pf0v0/arp_ignore";
  const std::string local = "net/ipv4/conf/pf0v0/accept_local";
  const std::string before = kernel_.Snapshot();
  ASSERT_TRUE(kernel_.WriteSysctls(Ns(kHost), {{ignore, "8"}, {local, "1"}, {"net/core/somaxconn", "17"}}));
  EXPECT_NE(kernel_.Snapshot(), before);
  EXPECT_EQ(Read(kHost, {local, ignore, "net/core/somaxconn"}), (Values{"1", "8", "17"}));
  EXPECT_EQ(Read(pod_, {ignore, "net/core/somaxconn"}), (Values{std::nullopt, "4096"}));
  ASSERT_TRUE(kernel_.WriteSysctls(Ns(kHost), {{"net/core/somaxconn", "4096"}}));
  ASSERT_TRUE(Route(kHost)->MoveLink(index_, Ns(pod_), "net1", {}));
  EXPECT_EQ(Read(pod_, {"net/ipv4/conf/net1/arp_ignore", "net/ipv4/conf/net1/accept_local"}),
            (Values{"0", "0"}));
  ASSERT_TRUE(Route(pod_)->MoveLink(Find(pod_, "net1").index, Ns(kHost), "pf0v0", {}));
  EXPECT_EQ(kernel_.Snapshot(), before);
}

TEST_F(FakeSettingsTest, ALinkEntersWithTheDefaultsOfTheNamespace) {
  ASSERT_TRUE(kernel_.WriteSysctls(
      Ns(pod_), {{"net/ipv4/conf/default/arp_ignore", "2"}, {"net/ipv6/conf/default/accept_ra", "0"}}));
  ASSERT_TRUE(kernel_.WriteSysctls(Ns(kHost), {{"net/ipv4/conf/pf0v0/arp_ignore", "8"}}));
  ASSERT_TRUE(Route(kHost)->MoveLink(index_, Ns(pod_), "net1", {}));
  EXPECT_EQ(Read(pod_, {"net/ipv4/conf/net1/arp_ignore", "net/ipv6/conf/net1/accept_ra"}),
            (Values{"2", "0"}));
}

TEST_F(FakeSettingsTest, ANewNamespaceInheritsIpv4OfTheHost) {
  ASSERT_TRUE(kernel_.WriteSysctls(
      Ns(kHost), {{"net/ipv4/conf/default/rp_filter", "2"}, {"net/ipv6/conf/default/accept_ra", "0"}}));
  const std::string other = kernel_.AddNamespace("other");
  EXPECT_EQ(Read(other, {"net/ipv4/conf/default/rp_filter", "net/ipv6/conf/default/accept_ra"}),
            (Values{"2", "1"}));
}

TEST_F(FakeSettingsTest, NetlinkAndSysctlsAreTheSameSettings) {
  LinkChange change;
  change.ipv4 = {{Ipv4Conf::kArpAnnounce, 2}};
  change.addr_gen_mode = AddrGenMode::kNone;
  EXPECT_EQ(ChangeError(change), 0);
  EXPECT_EQ(Read(kHost, {"net/ipv4/conf/pf0v0/arp_announce", "net/ipv6/conf/pf0v0/addr_gen_mode"}),
            (Values{"2", "1"}));
  ASSERT_TRUE(kernel_.WriteSysctls(Ns(kHost), {{"net/ipv6/conf/pf0v0/addr_gen_mode", "3"}}));
  EXPECT_EQ(Find(kHost, "pf0v0").addr_gen_mode, AddrGenMode::kRandom);
}

TEST_F(FakeSettingsTest, RefusedSysctls) {
  const auto unknown = kernel_.WriteSysctls(
      Ns(kHost), {{"net/ipv4/conf/pf0v0/arp_ignore", "8"}, {"net/ipv4/conf/pf0v0/nosuch", "1"}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Read(kHost, {"net/ipv4/conf/pf0v0/arp_ignore"}), Values{"0"}) << "none is written";
  const auto value = kernel_.WriteSysctls(
      Ns(kHost), {{"net/ipv4/conf/pf0v0/arp_ignore", "8"}, {"net/ipv4/conf/pf0v0/arp_filter", "many"}});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(Read(kHost, {"net/ipv4/conf/pf0v0/arp_ignore"}), Values{"8"}) << "the first is in force";
  for (const char* path : {"kernel/hostname", "net/../kernel/hostname"}) {
    EXPECT_EQ(kernel_.ReadSysctls(Ns(kHost), {path}).error().code, ErrorCode::kInvalid);
    EXPECT_EQ(kernel_.WriteSysctls(Ns(kHost), {{path, "1"}}).error().code, ErrorCode::kInvalid);
  }
}

TEST_F(FakeSettingsTest, WithoutIpv6ALinkHasNoSuchAddress) {
  kernel_.SetUp(kHost, "pf0v0", true);
  EXPECT_EQ(Route(kHost)->ListAddresses(index_)->size(), 1U);
  ASSERT_TRUE(kernel_.WriteSysctls(Ns(kHost), {{"net/ipv6/conf/all/disable_ipv6", "1"}}));
  EXPECT_TRUE(Route(kHost)->ListAddresses(index_)->empty());
  EXPECT_EQ(Route(kHost)->AddAddress(index_, *IpPrefix::Parse("fd00::1/64")).error().sys_errno, EACCES);
  EXPECT_TRUE(Route(kHost)->AddAddress(index_, *IpPrefix::Parse("10.0.0.1/24")));
}

class FakeDeviceTest : public FakeSettingsTest {
 protected:
  void SetUp() override {
    FakeSettingsTest::SetUp();
    kernel_.state().Find(kHost, "pf0v0")->device = AllSettings();
  }
  DeviceState Settings(const std::string& ns, const std::string& name) {
    return (*kernel_.OpenDevices(Ns(ns)))->Read(Find(ns, name)).value();
  }
  int WriteError(const std::string& name, const std::string& value, const std::string& link = "pf0v0") {
    DeviceState one;
    one.values.emplace(name, value);
    const auto done =
        (*kernel_.OpenDevices(Ns(kHost)))->Write(Find(kHost, link), FindDeviceField(name)->source, one);
    return done ? 0 : done.error().sys_errno;
  }
};

// As tests/namespace/device_settings_test.cc sees it on the real kernel.
TEST_F(FakeDeviceTest, AMoveKeepsAllButQdiscsAndDcbApplications) {
  ASSERT_EQ(WriteError("link.group", "7"), 0);
  ASSERT_EQ(WriteError("qdisc.root", "pfifo/00000180/64000000"), 0);
  ASSERT_EQ(WriteError("dcb.applications", "5/26/3"), 0);
  EXPECT_NE(kernel_.Snapshot().find("link.group=7"), std::string::npos);
  ASSERT_TRUE(Route(kHost)->MoveLink(index_, Ns(pod_), "net1", {}));
  const DeviceState moved = Settings(pod_, "net1");
  EXPECT_EQ(*moved.Find("link.group"), "7");
  EXPECT_EQ(*moved.Find("qdisc.root"), "");
  EXPECT_EQ(*moved.Find("dcb.applications"), "");
}

TEST_F(FakeDeviceTest, ADriverRefusesWhatItDoesNotHave) {
  EXPECT_TRUE(Settings(kHost, "pf0v1").values.empty());
  EXPECT_EQ(WriteError("rings.rx", "512", "pf0v1"), EOPNOTSUPP);
  EXPECT_EQ(WriteError("rings.rx", "many"), EINVAL);
  EXPECT_EQ(WriteError("rings.rx", "512"), 0);
  EXPECT_EQ(*Settings(kHost, "pf0v0").Find("rings.rx"), "512");
}

TEST_F(FakeDeviceTest, QueuesTablesAndPrograms) {
  ASSERT_EQ(WriteError("channels.combined", "3"), EINVAL) << "the table names a fourth queue";
  ASSERT_EQ(WriteError("rss.table", "00000000"), 0);
  ASSERT_EQ(WriteError("channels.combined", "1"), 0);
  ASSERT_EQ(WriteError("rss.table", "01000000"), EINVAL);
  kernel_.state().programs = {"5"};
  ASSERT_EQ(WriteError("xdp.driver", "5"), 0);
  EXPECT_EQ(WriteError("channels.combined", "2"), EBUSY);
  ASSERT_EQ(WriteError("xdp.driver", "6"), 0);
  EXPECT_EQ(*Settings(kHost, "pf0v0").Find("xdp.driver"), "") << "nobody holds the program";
  ASSERT_EQ(WriteError("tcx.ingress", "5"), 0);
  EXPECT_EQ(*Settings(kHost, "pf0v0").Find("tcx.ingress"), "") << "nothing is attached by it";
}

TEST_F(FakeDeviceTest, ALinkHoldsItsProgram) {
  FakeNetdev& netdev = *kernel_.state().Find(kHost, "pf0v0");
  netdev.device.values["tcx.egress"] = "5,77";
  netdev.linked_programs = {"77"};
  EXPECT_EQ(WriteError("tcx.egress", ""), EBUSY);
  netdev.linked_programs.clear();
  EXPECT_EQ(WriteError("tcx.egress", "5"), 0);
  EXPECT_EQ(*Settings(kHost, "pf0v0").Find("tcx.egress"), "5");
}

TEST_F(FakeSettingsTest, FailuresOfTheNewCalls) {
  auto route = Route(kHost);
  const NetNs host = Ns(kHost);
  kernel_.FailEvery("AddAltName", EIO);
  kernel_.FailEvery("WriteSysctls", EPERM, "arp_filter");
  EXPECT_EQ(route->AddAltName(index_, "rail0").error().sys_errno, EIO);
  EXPECT_TRUE(kernel_.WriteSysctls(host, {{"net/ipv4/conf/pf0v0/arp_ignore", "8"}}));
  EXPECT_EQ(kernel_.WriteSysctls(host, {{"net/ipv4/conf/pf0v0/arp_filter", "1"}}).error().sys_errno, EPERM);
  kernel_.StopFailing();
  // The change before the refusal stays.
  kernel_.FailCall(1, EIO, FakeKernel::Fault::kPartly);
  EXPECT_FALSE(kernel_.WriteSysctls(
      host, {{"net/ipv4/conf/pf0v0/arp_filter", "1"}, {"net/ipv4/conf/pf0v0/arp_notify", "1"}}));
  EXPECT_EQ(Read(kHost, {"net/ipv4/conf/pf0v0/arp_filter", "net/ipv4/conf/pf0v0/arp_notify"}),
            (Values{"1", "0"}));
}

}  // namespace
}  // namespace railhead::testing

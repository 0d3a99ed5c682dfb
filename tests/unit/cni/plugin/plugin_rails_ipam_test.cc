// The addresses of several devices: one transaction of the real railhead-ipam, or one call of another plugin
// for each device.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cni/protocol/cni_result.h"
#include "cni/state/journal.h"
#include "netns/base/text.h"
#include "tests/support/plugin/rails_fixture.h"

namespace railhead::testing {
namespace {

using Addresses = std::vector<std::string>;

class PluginRailsIpamTest : public RailsFixture {
 protected:
  void SetUp() override {
    RailsFixture::SetUp();
    std::filesystem::create_symlink(RAILHEAD_IPAM, Programs() + "/railhead-ipam");
    WriteFileAt(sysfs_.directory() + "/etc/railhead/node-name", "node0\n");
    ::setenv("RAILHEAD_ROOT", sysfs_.directory().c_str(), 1);
    WriteRanges({"10.100.0.10-10.100.0.12", "10.200.0.20-10.200.0.22", "10.150.0.30-10.150.0.30"});
  }
  void TearDown() override { ::unsetenv("RAILHEAD_ROOT"); }

  // Addresses may be used again at once.
  void WriteRanges(const std::vector<std::string>& ranges) {
    std::string text = R"({"version":1,"addresses":{"reuseDelaySeconds":0},"rails":[)";
    const Addresses nets = {"10.100.0", "10.200.0", "10.150.0"};
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const std::string n = std::to_string(i);
      text += (i > 0 ? "," : "") + std::string(R"({"name":"rail)") + n + R"(","pf":"pf)" + n +
              R"(","subnet":")" + nets[i] + R"(.0/24","gateway":")" + nets[i] +
              R"(.254","routes":["10.0.0.0/8"],"nodeRanges":{"node0":")" + ranges[i] + R"("}})";
    }
    WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json", text + "]}");
  }
  [[nodiscard]] Call Three(int n = 0, const std::string& container = "c1") const {
    return {.network = "rails", .container = container, .config = Devices({Bdf(0, n), Bdf(1, n), Bdf(2, n)})};
  }
  static Addresses AddressesOf(const Result<std::string>& result) {
    if (!result) return {"error: " + Describe(result.error())};
    Addresses all;
    const auto json = nlohmann::json::parse(*result, nullptr, false);
    for (const auto& ip : json["ips"]) all.push_back(ip["address"]);
    return all;
  }
};

TEST_F(PluginRailsIpamTest, OneCallServesAllRails) {
  const auto before = World();
  EXPECT_EQ(AddressesOf(Add(Three())), (Addresses{"10.100.0.10/24", "10.200.0.20/24", "10.150.0.30/24"}));
  const auto entry = Journal(sysfs_.root()).Find({"rails", "c1", "net1"});
  ASSERT_TRUE(entry && *entry);
  EXPECT_EQ((*entry)->ipam_calls.size(), 1U);
  EXPECT_EQ((*entry)->ipam_calls.at(0).ifname, "net1");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*entry)->devices.at(i).addressing.addresses.size(), 1U);
    EXPECT_EQ((*entry)->devices.at(i).addressing.table, 100 + i);
  }
  const auto checked = Check(Three());
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(Three()));
  EXPECT_EQ(ChangedSince(before), "");
}

// Railhead passes on addresses that the capability or CNI_ARGS request.
TEST_F(PluginRailsIpamTest, AddressesThatAreAskedFor) {
  Call three = Three();
  three.config += R"(,"runtimeConfig":{"ips":["10.200.0.22/24","10.100.0.12"]})";
  EXPECT_EQ(AddressesOf(Add(three)), (Addresses{"10.100.0.12/24", "10.200.0.22/24", "10.150.0.30/24"}));
  const auto checked = Check(three);
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(three));
  Call one{.config = R"("deviceID":")" + Bdf(0, 0) + '"', .args = "IP=10.100.0.11"};
  EXPECT_EQ(AddressesOf(Add(one)), (Addresses{"10.100.0.11/24"}));
  const auto again = Check(one);
  EXPECT_TRUE(again) << Describe(again.error());
  const std::string other = MakePod("pod2");
  const auto refused = Add({.container = "c2",
                            .netns = other,
                            .config = R"("deviceID":")" + Bdf(0, 1) + '"',
                            .args = "IP=10.100.0.11"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(CniCodeOf(refused.error().code), kCniTryAgainLater);
  EXPECT_NE(Describe(refused.error()).find("is held by container c1"), std::string::npos)
      << Describe(refused.error());
}

TEST_F(PluginRailsIpamTest, DeterministicByTheIndexOfTheVf) {
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
              R"({"version":1,"addresses":{"policy":"deterministic"},"nodes":{"node0":1},"rails":[
                  {"name":"rail0","pf":"pf0","subnet":"10.100.0.0/24","nodeBlock":28},
                  {"name":"rail1","pf":"pf1","subnet":"10.200.0.0/24","nodeRanges":{"1":"10.200.0.50-10.200.0.60"}},
                  {"name":"rail2","pf":"pf2","subnet":"10.150.0.0/24","nodeBlock":28}]})");
  const Call three{
      .network = "rails", .container = "c1", .config = Devices({Bdf(0, 1), Bdf(1, 0), Bdf(2, 1)})};
  EXPECT_EQ(AddressesOf(Add(three)), (Addresses{"10.100.0.17/24", "10.200.0.50/24", "10.150.0.17/24"}));
  const auto checked = Check(three);
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(three));
  const Call one{.config = R"("deviceID":")" + Bdf(0, 1) + '"'};
  EXPECT_EQ(AddressesOf(Add(one)), (Addresses{"10.100.0.17/24"})) << "the same again, and at once";
  const auto status = Status("");
  EXPECT_TRUE(status) << Describe(status.error());
}

// A configuration that names its subnets itself is not asked for the rail's.
TEST_F(PluginRailsIpamTest, SetsOfTheConfigurationInPlaceOfTheRail) {
  Call one{.config = R"("deviceID":")" + Bdf(0, 0) +
                     R"(","ipam":{"type":"railhead-ipam","ranges":[[{"subnet":"10.9.0.0/24"}],
                        [{"subnet":"fd00:9::/64"}]]})"};
  EXPECT_EQ(AddressesOf(Add(one)), (Addresses{"10.9.0.2/24", "fd00:9::2/64"}));
  const auto checked = Check(one);
  EXPECT_TRUE(checked) << Describe(checked.error());
}

// rail2 has one address: the addresses of rail0 and rail1 are not lost with it.
TEST_F(PluginRailsIpamTest, ExhaustedOnTheLastRail) {
  WriteRanges({"10.100.0.10-10.100.0.11", "10.200.0.20-10.200.0.21", "10.150.0.30-10.150.0.30"});
  ASSERT_TRUE(Add(Three()));
  const std::string other = MakePod("pod2");
  const auto before = World();
  for (int i = 0; i < 3; ++i) {  // more often than there are addresses
    Call second = Three(1, "c2");
    second.netns = other;
    const auto added = Add(second);
    ASSERT_FALSE(added);
    EXPECT_EQ(CniCodeOf(added.error().code), kCniExhausted) << Describe(added.error());
    EXPECT_NE(Describe(added.error()).find("rail2"), std::string::npos) << Describe(added.error());
    EXPECT_EQ(ChangedSince(before), "");
  }
  Call two{.container = "c3", .netns = other, .config = Devices({Bdf(0, 1), Bdf(1, 1)})};
  EXPECT_EQ(AddressesOf(Add(two)), (Addresses{"10.100.0.11/24", "10.200.0.21/24"}));
}

TEST_F(PluginRailsIpamTest, FailedAddGivesAllBack) {
  kernel_.FailEvery("MoveLink", EIO, "rail2");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Add(Three()));
  kernel_.StopFailing();
  EXPECT_EQ(AddressesOf(Add(Three())).size(), 3U) << "rail2 has only one to give";
}

TEST_F(PluginRailsIpamTest, KilledAddGivesAllBack) {
  const auto before = World();
  ASSERT_TRUE(Kill(Three(), CountAdd(Three(), 80) / 2));
  ASSERT_TRUE(Del(Three()));
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_EQ(AddressesOf(Add(Three())).size(), 3U) << "rail2 has only one to give";
}

TEST_F(PluginRailsIpamTest, RailWithoutSubnetGetsNoAddress) {
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
              R"({"version":1,"rails":[{"name":"rail0","pf":"pf0","subnet":"10.100.0.0/24",
                  "nodeRanges":{"node0":"10.100.0.10-10.100.0.12"}},{"name":"rail1","pf":"pf1"},
                  {"name":"rail2","pf":"pf2","subnet":"10.150.0.0/24",
                  "nodeRanges":{"node0":"10.150.0.30-10.150.0.31"}}]})");
  const auto before = World();
  EXPECT_EQ(AddressesOf(Add(Three())), (Addresses{"10.100.0.10/24", "10.150.0.30/24"}));
  EXPECT_TRUE(kernel_.state().Find(pod_, "rail1")->addresses.empty());
  EXPECT_FALSE(kernel_.state().Find(pod_, "rail2")->addresses.empty()) << "each has its own";
  const auto checked = Check(Three());
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(Three()));
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginRailsIpamTest, GarbageCollectionKeepsTheLinksOfTheLiving) {
  ASSERT_TRUE(Add(Three()));
  const auto collected = Gc({{"c1", "net1"}}, {.network = "rails"});
  ASSERT_TRUE(collected) << Describe(collected.error());
  const auto checked = Check(Three());
  EXPECT_TRUE(checked) << "its addresses are still its own: " << Describe(checked.error());
  EXPECT_TRUE(Gc({}, {.network = "rails"}));
  EXPECT_EQ(AddressesOf(Add(Three())).size(), 3U);
}

TEST_F(PluginRailsIpamTest, StatusAsksIt) {
  const auto status = Status("");
  EXPECT_TRUE(status) << Describe(status.error());
}

// Another plugin allocates one address per call, so each link needs a call of its own. After a refusal ADD
// calls DEL for the earlier links and for the refused one, not for later ones.
TEST_F(PluginRailsIpamTest, OtherPluginsAreAskedForEach) {
  const auto before = World();
  FailIpam("ADD-rail1");
  EXPECT_FALSE(Add(AllRails()));
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_EQ(IpamLog(), "ADD rail0, ADD rail1, DEL rail1, DEL rail0");
  FailIpam("");
  ASSERT_TRUE(Add(AllRails()));
  EXPECT_EQ(HeldAddresses(), "c1@rail0 c1@rail1 c1@rail2");
  (void)IpamLog();
  FailIpam("DEL-rail1");
  EXPECT_FALSE(Del(AllRails()));
  FailIpam("");
  ASSERT_TRUE(Del(AllRails()));
  EXPECT_EQ(HeldAddresses(), "");
}

// An address must not go to the next pod while a device may still have it.
TEST_F(PluginRailsIpamTest, AddressIsKeptWhileADeviceCannotBeRestored) {
  const auto before = World();
  kernel_.FailEvery("WaitCarrier", EIO);
  kernel_.FailEvery("MoveLink", EBUSY, "pf1v0");  // when it is restored
  const auto added = Add(AllRails());
  ASSERT_FALSE(added);
  EXPECT_NE(Describe(added.error()).find("DEL or railheadd will restore it"), std::string::npos);
  EXPECT_EQ(added.error().message.find("undoing"), std::string::npos) << "first what ADD failed for";
  EXPECT_NE(added.error().hint.find("not undone: "), std::string::npos) << Describe(added.error());
  EXPECT_EQ(HeldAddresses(), "c1@rail0 c1@rail1 c1@rail2");
  kernel_.StopFailing();
  ASSERT_TRUE(Del(AllRails()));
  EXPECT_EQ(ChangedSince(before), "");
}

// CNI_IFNAME is the cluster's own interface, whose address another plugin may have given.
TEST_F(PluginRailsIpamTest, ALoneDeviceIsNotTheClustersInterface) {
  const Call call{.network = "rails",
                  .ifname = "eth0",
                  .config = Devices({Bdf(1)}) + R"(,"ipam":{"type":"test-ipam","address":"10.200.0.10/24"})"};
  const auto before = World();
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(HeldAddresses(), "c1@rail1");
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(IpamLog(), "ADD rail1, DEL rail1");
  EXPECT_EQ(ChangedSince(before), "");
}

// Plugins answer in the order of their configuration, the kernel takes a router only once it is on the link.
TEST_F(PluginRailsIpamTest, RoutesComeInAnyOrder) {
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
              R"({"version":1,"rails":[{"name":"rail0","pf":"pf0"}]})");
  const auto before = World();
  std::vector<std::string> routes = {
      R"({"dst":"10.128.0.1/32","scope":253})", R"({"dst":"10.128.0.0/16","gw":"10.128.0.1"})",
      R"({"dst":"10.129.0.0/16","gw":"10.130.0.7"})", R"({"dst":"10.130.0.0/24","scope":253})"};
  std::sort(routes.begin(), routes.end());
  int orders = 0;
  do {
    const Call call{.config = R"("deviceID":")" + Bdf(0) +
                              R"(","ipam":{"type":"test-ipam","address":"10.100.0.10/32","routes":)" + "[" +
                              Join(routes, ",") + "]}"};
    const auto added = Add(call);
    ASSERT_TRUE(added) << call.config << ": " << Describe(added.error());
    const auto checked = Check(call);
    EXPECT_TRUE(checked) << Describe(checked.error());
    ASSERT_TRUE(Del(call));
    EXPECT_EQ(ChangedSince(before), "") << call.config;
    ++orders;
  } while (std::next_permutation(routes.begin(), routes.end()));
  EXPECT_EQ(orders, 24);
}

TEST_F(PluginRailsIpamTest, AnIpv6RouterMayBeLinkLocal) {
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
              R"({"version":1,"rails":[{"name":"rail0","pf":"pf0"}]})");
  const Call call{.config = R"("deviceID":")" + Bdf(0) +
                            R"(","ipam":{"type":"test-ipam","address":"fd00:5::5/64","gateway":"fe80::1",
                               "routes":[{"dst":"fd00::/16"}]})"};
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
}

// Nothing is touched before the refusal.
TEST_F(PluginRailsIpamTest, ARouterThatIsNotOnTheLinkIsRefused) {
  const auto before = World();
  const auto added = Add({.config = R"("deviceID":")" + Bdf(0) +
                                    R"(","ipam":{"type":"test-ipam","address":"10.100.0.10/24",
                        "routes":[{"dst":"10.9.0.0/16","gw":"10.101.0.1"}]})"});
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniInvalidConfig);
  const std::string said = Describe(added.error());
  EXPECT_NE(said.find("route 10.9.0.0/16: gateway 10.101.0.1 is in no subnet"), std::string::npos) << said;
  EXPECT_EQ(ChangedSince(before), "");
}

// The kernel takes a destination once for each table and metric, whichever the interface.
TEST_F(PluginRailsIpamTest, RoutesOfTwoRailsThatCollideAreRefused) {
  const auto before = World();
  for (const char* more : {R"("priority":50)", R"("table":500)"}) {
    const std::string routes = R"("routes":[{"dst":"10.0.0.0/8",)" + std::string(more) + "}]";
    const auto added = Add(
        {.network = "rails",
         .config =
             Devices({Bdf(0), Bdf(1)}) +
             R"(,"ipam":{"type":"test-ipam","addresses":{"rail0":"10.100.0.10/24","rail1":"10.200.0.10/24"},)" +
             routes + "}"});
    ASSERT_FALSE(added);
    const std::string said = Describe(added.error());
    for (const char* word : {"rail0", "rail1", "10.0.0.0/8", "priority"})
      EXPECT_NE(said.find(word), std::string::npos) << said;
    EXPECT_EQ(ChangedSince(before), "");
  }
}

}  // namespace
}  // namespace railhead::testing

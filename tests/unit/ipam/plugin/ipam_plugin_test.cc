// railhead-ipam as a process: the commands and versions of the CNI specification.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "ipam/store/held_addresses.h"
#include "tests/support/ipam/run_ipam.h"
#include "tests/support/ipam/store_pages.h"
#include "tests/support/ipam/support.h"

namespace railhead::testing {
namespace {

using nlohmann::json;

json Config(const std::string& version = "1.0.0") {
  return {{"cniVersion", version},
          {"name", "rail0"},
          {"type", "macvlan"},
          {"ipam",
           {{"type", "railhead-ipam"},
            {"subnet", "10.100.0.0/24"},
            {"rangeStart", "10.100.0.10"},
            {"rangeEnd", "10.100.0.12"},
            {"gateway", "10.100.0.254"},
            {"routes", json::array({{{"dst", "10.0.0.0/8"}, {"gw", "10.100.0.254"}, {"table", 100}}})}}}};
}

class PluginTest : public ::testing::Test {
 protected:
  Answer Run(const std::string& command, const std::string& container, const json& config) {
    return RunIpam(scratch_.path(), {command, container, config.dump()});
  }
  ScratchRoot scratch_;
};

class EveryVersion : public PluginTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(EveryVersion, AddCheckDel) {
  const std::string version = GetParam();
  json config = Config(version);
  const Answer added = Run("ADD", "abc", config);
  ASSERT_EQ(added.status, 0) << added.out << added.err;
  json ip{{"address", "10.100.0.10/24"}, {"gateway", "10.100.0.254"}};
  if (version[0] == '0') ip["version"] = "4";
  json route{{"dst", "10.0.0.0/8"}, {"gw", "10.100.0.254"}};
  if (version == "1.1.0") route["table"] = 100;
  EXPECT_EQ(added.Json(), (json{{"cniVersion", version},
                                {"ips", json::array({ip})},
                                {"routes", json::array({route})},
                                {"dns", json::object()}}));
  if (version.rfind("0.3", 0) != 0) {
    config["prevResult"] = added.Json();
    const Answer checked = Run("CHECK", "abc", config);
    EXPECT_EQ(checked.status, 0) << checked.out;
    EXPECT_EQ(checked.out, "");
  }
  const Answer deleted = Run("DEL", "abc", config);
  EXPECT_EQ(deleted.status, 0) << deleted.out;
  EXPECT_EQ(deleted.out, "");
  EXPECT_EQ(Run("ADD", "abc", Config(version)).Address(), "10.100.0.11/24");
}

INSTANTIATE_TEST_SUITE_P(Versions, EveryVersion,
                         ::testing::Values("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"));

TEST_F(PluginTest, TellsItsVersions) {
  const Answer answer = RunIpam(scratch_.path(), {"VERSION", "", R"({"cniVersion": "0.4.0"})"});
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.Json()["cniVersion"], "0.4.0");
  EXPECT_EQ(answer.Json()["supportedVersions"], (json{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}));
}

TEST_F(PluginTest, TheSameContainerGetsTheSameAddress) {
  EXPECT_EQ(Run("ADD", "abc", Config()).Address(), "10.100.0.10/24");
  EXPECT_EQ(Run("ADD", "abc", Config()).Address(), "10.100.0.10/24");
  EXPECT_EQ(Run("ADD", "xyz", Config()).Address(), "10.100.0.11/24");
  // Another interface of the container, or the same one in another network, is another owner.
  Call other{"ADD", "abc", Config().dump()};
  other.ifname = "net2";
  EXPECT_EQ(RunIpam(scratch_.path(), other).Address(), "10.100.0.12/24");
}

TEST_F(PluginTest, NetworksOfOneSubnetShareItsAddresses) {
  EXPECT_EQ(Run("ADD", "abc", Config()).Address(), "10.100.0.10/24");
  json second = Config();
  second["name"] = "rail0-again";
  EXPECT_EQ(Run("ADD", "abc", second).Address(), "10.100.0.11/24");
  // Each releases its own.
  EXPECT_EQ(Run("DEL", "abc", second).status, 0);
  EXPECT_EQ(Run("CHECK", "abc", Config()).status, 0);
  EXPECT_EQ(Run("CHECK", "abc", second).status, 1);
}

TEST_F(PluginTest, DelOfTheUnknownAndTwiceSucceeds) {
  EXPECT_EQ(Run("DEL", "nobody", Config()).status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path())) << "DEL of nothing made something";
  Run("ADD", "abc", Config());
  EXPECT_EQ(Run("DEL", "nobody", Config()).status, 0);
  EXPECT_EQ(Run("CHECK", "abc", Config()).status, 0);
  EXPECT_EQ(Run("DEL", "abc", Config()).status, 0);
  EXPECT_EQ(Run("DEL", "abc", Config()).status, 0);
}

TEST_F(PluginTest, DelNeedsNeitherNamespaceNorASoundIpamObject) {
  Run("ADD", "abc", Config());
  json broken = Config();
  broken["ipam"] = {{"type", "railhead-ipam"}, {"subnet", 7}};
  Call del{"DEL", "abc", broken.dump()};
  del.netns = "";
  EXPECT_EQ(RunIpam(scratch_.path(), del).status, 0);
  EXPECT_EQ(Run("CHECK", "abc", Config()).status, 1);
}

TEST_F(PluginTest, CheckTellsWhatIsWrong) {
  EXPECT_EQ(Run("CHECK", "abc", Config()).Error().substr(0, 4), "101:");
  json config = Config();
  config["prevResult"] = Run("ADD", "abc", config).Json();
  EXPECT_EQ(Run("CHECK", "abc", config).status, 0);
  config["prevResult"]["ips"][0]["address"] = "10.100.0.12/24";
  EXPECT_NE(Run("CHECK", "abc", config).Error().find("106: 10.100.0.10 is held by container abc"),
            std::string::npos)
      << Run("CHECK", "abc", config).Error();
  config = Config();
  config["ipam"]["rangeStart"] = "10.100.0.11";
  EXPECT_EQ(Run("CHECK", "abc", config).Error().substr(0, 4), "101:");
}

TEST_F(PluginTest, SixtyFourProcessesGetSixtyFourAddresses) {
  json config = Config();
  config["ipam"]["rangeEnd"] = "10.100.0.90";
  std::vector<Call> calls;
  calls.reserve(64);
  for (int i = 0; i < 64; ++i) calls.push_back({"ADD", "c" + std::to_string(i), config.dump()});
  std::set<std::string> addresses;
  for (const Answer& answer : RunIpamAtOnce(scratch_.path(), calls)) {
    EXPECT_EQ(answer.status, 0) << answer.out << answer.err;
    addresses.insert(answer.Address());
  }
  EXPECT_EQ(addresses.size(), 64U);
  for (Call& call : calls) call.command = "DEL";
  for (const Answer& answer : RunIpamAtOnce(scratch_.path(), calls))
    EXPECT_EQ(answer.status, 0) << answer.out;
  // All are in their reuse delay now; 17 of 81 were never used.
  for (int i = 0; i < 17; ++i) EXPECT_EQ(Run("ADD", "d" + std::to_string(i), config).status, 0);
  EXPECT_NE(Run("ADD", "e", config).Error().find("size 81, in use 17, cooling down 64"), std::string::npos);
}

TEST_F(PluginTest, Ipv6AndPointToPoint) {
  json six = Config();
  six["ipam"] = {{"type", "railhead-ipam"}, {"subnet", "fd00:100::/64"}, {"gateway", "fd00:100::1"}};
  EXPECT_EQ(Run("ADD", "abc", six).Address(), "fd00:100::2/64");
  six["cniVersion"] = "0.4.0";
  EXPECT_EQ(Run("ADD", "abc", six).Json()["ips"][0]["version"], "6");
  json two = Config();
  two["ipam"] = {{"type", "railhead-ipam"}, {"subnet", "10.9.0.4/31"}, {"gateway", "10.9.0.4"}};
  EXPECT_EQ(Run("ADD", "abc", two).Address(), "10.9.0.5/31");
}

TEST(CommandLine, HelpVersionAndTheUnknown) {
  const Answer help = RunIpamWith({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("usage:"), std::string::npos);
  EXPECT_NE(help.out.find("reuseDelaySeconds"), std::string::npos);
  const Answer version = RunIpamWith({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out, "railhead-ipam " RAILHEAD_VERSION "\n");
  const Answer unknown = RunIpamWith({"--frobnicate"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("--frobnicate"), std::string::npos);
  EXPECT_EQ(unknown.out, "");
}

// STATUS of railhead-ipam: whether any ADD can succeed, found out without a trace.

class StatusTest : public ::testing::Test {
 protected:
  static json Config(const json& ipam) {
    json config{{"cniVersion", "1.1.0"}, {"name", "net"}, {"type", "macvlan"}, {"ipam", ipam}};
    config["ipam"]["type"] = "railhead-ipam";
    return config;
  }
  // "" when all is well.
  std::string Status(const json& ipam) {
    const Answer answer = RunIpam(scratch_.path(), {"STATUS", "", Config(ipam).dump(), "", ""});
    return answer.status == 0 ? answer.out : answer.Error();
  }
  void Add(const std::string& container, const json& ipam) {
    const Answer added = RunIpam(scratch_.path(), {"ADD", container, Config(ipam).dump()});
    ASSERT_EQ(added.status, 0) << added.out;
  }

  ScratchRoot scratch_;
  const json two_{{"subnet", "10.0.0.0/30"}, {"reuseDelaySeconds", 100}};
};

TEST_F(StatusTest, SoundWithoutAStoreAndWithOne) {
  EXPECT_EQ(Status(two_), "");
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path())) << "STATUS made something";
  Add("a", two_);
  const std::string before = StoreBytes(scratch_.StorePath());
  EXPECT_EQ(Status(two_), "");
  EXPECT_EQ(StoreBytes(scratch_.StorePath()), before);
}

// The runtime would report the whole node as not ready. ADD says which pool is exhausted.
TEST_F(StatusTest, PassesForAFullPool) {
  Add("a", two_);
  Add("b", two_);
  const std::string before = StoreBytes(scratch_.StorePath());
  EXPECT_EQ(Status(two_), "");
  EXPECT_EQ(StoreBytes(scratch_.StorePath()), before);
  ASSERT_EQ(RunIpam(scratch_.path(), {"ADD", "c", Config(two_).dump()}).status, 1) << "it is full";
  ASSERT_EQ(RunIpam(scratch_.path(), {"DEL", "a", Config(two_).dump()}).status, 0);
  EXPECT_EQ(Status(two_), "") << "the released address cools down";
  const json links{{"links", json::array({{{"ifname", "rail0"}, {"subnet", "10.0.1.0/24"}},
                                          {{"ifname", "rail1"}, {"subnet", "10.0.0.0/30"}}})}};
  EXPECT_EQ(Status(links), "") << "of one link";
}

TEST_F(StatusTest, ABrokenStoreIsCode50) {
  scratch_.Write("/var/lib/railhead/ipam/store.mdb", std::string(9000, 'x'));
  for (const json& ipam : {two_, json::object()}) {
    EXPECT_EQ(Status(ipam).substr(0, 3), "50:") << Status(ipam);
    EXPECT_NE(Status(ipam).find(scratch_.StorePath()), std::string::npos) << Status(ipam);
    EXPECT_NE(Status(ipam).find("move it away"), std::string::npos) << Status(ipam);
  }
}

TEST_F(StatusTest, NoPlaceForAStoreIsCode50) {
  scratch_.Write("/var", "a file");
  EXPECT_EQ(Status(two_).substr(0, 3), "50:") << Status(two_);
  EXPECT_NE(Status(two_).find(scratch_.path() + "/var: "), std::string::npos) << Status(two_);
}

TEST_F(StatusTest, ABrokenConfigurationIsCode50) {
  EXPECT_EQ(Status({{"subnet", 7}}), "50: network configuration: /ipam/subnet: is not a string but number");
  const std::string error = Status({{"rail", "rail0"}});
  EXPECT_EQ(error.substr(0, 3), "50:") << error;
  EXPECT_NE(error.find("/etc/railhead/fabric.json, which does not exist"), std::string::npos) << error;
}

// Below railhead the rail is known only when there is a device.
TEST_F(StatusTest, WithoutARailTheStoreIsLookedAt) {
  EXPECT_EQ(Status(json::object()), "");
  Add("a", two_);
  EXPECT_EQ(Status(json::object()), "");
}

TEST_F(StatusTest, OlderVersionsHaveNoStatus) {
  json config = Config(two_);
  config["cniVersion"] = "1.0.0";
  EXPECT_EQ(RunIpam(scratch_.path(), {"STATUS", "", config.dump(), "", ""}).Error().substr(0, 2), "1:");
}

// GC of railhead-ipam releases what no valid attachment of the network holds.

class GcTest : public ::testing::Test {
 protected:
  static json Config(const std::string& network, bool links = false) {
    json ipam{{"type", "railhead-ipam"}};
    if (links) {
      ipam["links"] = json::array({{{"ifname", "rail0"}, {"subnet", "10.0.0.0/24"}},
                                   {{"ifname", "rail1"}, {"subnet", "10.0.1.0/24"}}});
    } else {
      ipam["subnet"] = "10.0.0.0/24";
    }
    return {{"cniVersion", "1.1.0"}, {"name", network}, {"type", "macvlan"}, {"ipam", ipam}};
  }
  void Add(const std::string& network, const std::string& container, const std::string& ifname,
           bool links = false) {
    const Answer added = RunIpam(scratch_.path(), {"ADD", container, Config(network, links).dump(), ifname});
    ASSERT_EQ(added.status, 0) << added.out;
  }
  Answer Gc(const std::string& network, const json& valid) {
    json config = Config(network);
    config["cni.dev/valid-attachments"] = valid;
    return RunIpam(scratch_.path(), {"GC", "", config.dump(), "", ""});
  }
  // "network/container/ifname", sorted.
  std::vector<std::string> Held() {
    std::vector<std::string> held;
    const auto listed = ipam::ListHeld(scratch_.root());
    if (!listed) return {Describe(listed.error())};
    for (const ipam::AddressRecord& record : listed->records) {
      held.push_back(record.owner.network + "/" + record.owner.container + "/" + record.owner.ifname);
    }
    std::sort(held.begin(), held.end());
    return held;
  }
  static json Valid(const std::string& container, const std::string& ifname) {
    return {{"containerID", container}, {"ifname", ifname}};
  }

  ScratchRoot scratch_;
};

TEST_F(GcTest, ReleasesWhatIsNotListed) {
  Add("net", "a", "eth0");
  Add("net", "b", "eth0");
  Add("net", "b", "eth1");
  Add("net", "c", "eth0", true);
  Add("net", "d", "eth0", true);
  const Answer done = Gc("net", {Valid("b", "eth1"), Valid("d", "eth0"), Valid("gone", "eth0")});
  EXPECT_EQ(done.status, 0) << done.out;
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(Held(), (std::vector<std::string>{"net/b/eth1", "net/d/eth0/rail0", "net/d/eth0/rail1"}));
  // Again, and with nothing valid.
  EXPECT_EQ(Gc("net", {Valid("b", "eth1"), Valid("d", "eth0")}).status, 0);
  EXPECT_EQ(Held().size(), 3U);
  EXPECT_EQ(Gc("net", json::array()).status, 0);
  EXPECT_EQ(Held(), std::vector<std::string>{});
  // Released addresses are in their reuse delay.
  Add("net", "e", "eth0");
  const auto held = ipam::ListHeld(scratch_.root());
  EXPECT_EQ(held->records.front().address.ToString(), "10.0.0.6");
}

TEST_F(GcTest, OtherNetworksAreNotItsBusiness) {
  for (const char* network : {"net", "net0", "ne", "other"}) Add(network, "a", "eth0");
  Add("other", "b", "eth0", true);
  EXPECT_EQ(Gc("net", json::array()).status, 0);
  EXPECT_EQ(Held(), (std::vector<std::string>{"ne/a/eth0", "net0/a/eth0", "other/a/eth0",
                                              "other/b/eth0/rail0", "other/b/eth0/rail1"}));
  // A container that another network lists is not listed here.
  EXPECT_EQ(Gc("other", json::array({Valid("b", "eth0")})).status, 0);
  EXPECT_EQ(Held(), (std::vector<std::string>{"ne/a/eth0", "net0/a/eth0", "other/b/eth0/rail0",
                                              "other/b/eth0/rail1"}));
}

TEST_F(GcTest, NamesThatBeginAlike) {
  Add("net", "a", "eth1", true);
  Add("net", "a", "eth10", true);
  EXPECT_EQ(Gc("net", json::array({Valid("a", "eth1")})).status, 0);
  EXPECT_EQ(Held(), (std::vector<std::string>{"net/a/eth1/rail0", "net/a/eth1/rail1"}));
  Add("net", "a", "eth10");
  EXPECT_EQ(Gc("net", json::array({Valid("a", "eth10")})).status, 0);
  EXPECT_EQ(Held(), (std::vector<std::string>{"net/a/eth10"}));
}

// An attachment is named by CNI_IFNAME, never by one of its links.
TEST_F(GcTest, ALinksOwnNameIsNoAttachment) {
  Add("net", "a", "eth0", true);
  const auto held = Held();
  for (const char* link : {"rail0", "eth0/rail0", "eth0/"}) {
    EXPECT_EQ(RunIpam(scratch_.path(), {"DEL", "a", Config("net", true).dump(), link}).status, 0);
    EXPECT_EQ(Held(), held) << link;
  }
  EXPECT_EQ(Gc("net", {Valid("a", "rail0"), Valid("a", "eth0/rail0")}).status, 0);
  EXPECT_EQ(Held(), std::vector<std::string>{});
}

TEST_F(GcTest, WithoutASoundListNothingHappens) {
  Add("net", "a", "eth0");
  const std::vector<std::string> before = Held();
  for (const char* list : {"null", "7", R"({"containerID": "a", "ifname": "eth0"})",
                           R"([{"ifname": "eth0"}])", R"([{"containerID": "a", "ifname": "eth0"}, "b"])"}) {
    const std::string error = Gc("net", json::parse(list)).Error();
    EXPECT_EQ(error.substr(0, 2), "7:") << list << ": " << error;
    EXPECT_NE(error.find("/cni.dev~1valid-attachments"), std::string::npos) << list << ": " << error;
    EXPECT_EQ(Held(), before) << list;
  }
  const std::string error = RunIpam(scratch_.path(), {"GC", "", Config("net").dump(), "", ""}).Error();
  EXPECT_NE(error.find("is missing"), std::string::npos) << error;
  EXPECT_EQ(Held(), before);
}

TEST_F(GcTest, BrokenConfigurationAndFabricDoNotMatter) {
  Add("net", "a", "eth0");
  json config = Config("net");
  config["ipam"] = {{"type", "railhead-ipam"}, {"rail", 7}};
  config["cni.dev/valid-attachments"] = json::array();
  EXPECT_EQ(RunIpam(scratch_.path(), {"GC", "", config.dump(), "", ""}).status, 0);
  EXPECT_EQ(Held(), std::vector<std::string>{});
}

TEST_F(GcTest, WithoutAStoreNothingIsMade) {
  EXPECT_EQ(Gc("net", json::array()).status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path()));
}

TEST_F(GcTest, OlderVersionsHaveNoGc) {
  Add("net", "a", "eth0");
  json config = Config("net");
  config["cniVersion"] = "1.0.0";
  config["cni.dev/valid-attachments"] = json::array();
  EXPECT_EQ(RunIpam(scratch_.path(), {"GC", "", config.dump(), "", ""}).Error().substr(0, 2), "1:");
  EXPECT_EQ(Held().size(), 1U);
}

}  // namespace
}  // namespace railhead::testing

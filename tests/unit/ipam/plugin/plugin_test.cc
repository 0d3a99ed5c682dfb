// railhead-ipam as a process: the commands and versions of the CNI specification.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/ipam/run_ipam.h"
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
  // Another interface of it, or the same in another network, is someone else.
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
  // All rest now; 17 of 81 were never used.
  for (int i = 0; i < 17; ++i) EXPECT_EQ(Run("ADD", "d" + std::to_string(i), config).status, 0);
  EXPECT_NE(Run("ADD", "e", config).Error().find("size 81, in use 17, resting 64"), std::string::npos);
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
  EXPECT_NE(help.out.find("restSeconds"), std::string::npos);
  const Answer version = RunIpamWith({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out, "railhead-ipam " RAILHEAD_VERSION "\n");
  const Answer unknown = RunIpamWith({"--frobnicate"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("--frobnicate"), std::string::npos);
  EXPECT_EQ(unknown.out, "");
}

}  // namespace
}  // namespace railhead::testing

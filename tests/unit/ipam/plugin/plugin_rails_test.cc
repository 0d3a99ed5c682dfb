// railhead-ipam by fabric.json: this node's range of a rail.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cni/fabric/node_index.h"
#include "tests/support/ipam/run_ipam.h"
#include "tests/support/ipam/support.h"

namespace railhead::testing {
namespace {

using nlohmann::json;

json Fabric() {
  return json::parse(R"({
    "version": 1,
    "rails": [
      {"name": "rail0", "pf": 0, "subnet": "10.100.0.0/24", "gateway": "10.100.0.254",
       "routes": ["10.0.0.0/8", "192.168.0.0/16"], "exclude": ["10.100.0.11", "10.100.0.110-10.100.0.114"],
       "nodeRanges": {"alpha": "10.100.0.10-10.100.0.13", "7": "10.100.0.110-10.100.0.119"}},
      {"name": "rail1", "pf": 1, "subnet": "10.101.0.0/24", "gateway": "10.101.0.1", "nodeBlock": 28},
      {"name": "bare", "pf": 2}
    ],
    "nodes": {"alpha": 0, "beta": 7},
    "addresses": {"reuseDelaySeconds": 0}
  })");
}

class RailTest : public ::testing::Test {
 protected:
  RailTest() {
    SetFabric(Fabric());
    SetNode("alpha");
  }
  void SetFabric(const json& fabric) { scratch_.Write("/etc/railhead/fabric.json", fabric.dump()); }
  void SetNode(const std::string& name) { scratch_.Write("/etc/railhead/node-name", name + "\n"); }
  static json Config(const std::string& rail) {
    return {{"cniVersion", "1.1.0"},
            {"name", "net"},
            {"type", "railhead"},
            {"ipam", {{"type", "railhead-ipam"}, {"rail", rail}}}};
  }
  Answer Add(const std::string& container, const std::string& rail = "rail0") {
    return RunIpam(scratch_.path(), {"ADD", container, Config(rail).dump()});
  }
  ScratchRoot scratch_;
};

// Each node has a network of its own: its pods get the length of that one, and the router in it.
TEST_F(RailTest, TheNodesOwnNetwork) {
  const auto added = [&](const json& fields, const std::string& container) {
    json fabric = Fabric();
    json rail{{"name", "rail0"}, {"pf", 0}};
    rail.update(fields);
    fabric["rails"] = json::array({rail});
    SetFabric(fabric);
    const Answer answer = Add(container);
    EXPECT_EQ(answer.status, 0) << answer.out;
    return answer.Json();
  };
  SetNode("beta");
  json done = added({{"subnet", "10.9.0.0/24"}, {"nodeSubnet", 31}, {"gateway", "other"}}, "a");
  EXPECT_EQ(done["ips"], json::array({{{"address", "10.9.0.15/31"}, {"gateway", "10.9.0.14"}}}));
  EXPECT_EQ(done["routes"], json::array({{{"dst", "10.9.0.0/24"}, {"gw", "10.9.0.14"}}}));
  done = added(
      {{"subnet", "10.8.0.0/22"}, {"nodeSubnet", 26}, {"gateway", "last"}, {"probeAddresses", "first"}}, "b");
  EXPECT_EQ(done["ips"], json::array({{{"address", "10.8.1.194/26"}, {"gateway", "10.8.1.254"}}}));
  done = added(
      {{"subnet", "fd00:8::/56"}, {"nodeSubnet", 64}, {"gateway", "first"}, {"routes", {"fd00::/16"}}}, "c");
  EXPECT_EQ(done["ips"], json::array({{{"address", "fd00:8:0:7::2/64"}, {"gateway", "fd00:8:0:7::1"}}}));
  EXPECT_EQ(done["routes"], json::array({{{"dst", "fd00::/16"}, {"gw", "fd00:8:0:7::1"}}}));
}

// The switch knows the address at one MAC. That one may have it again at once, another one has to wait.
TEST_F(RailTest, TheOnlyAddressReturnsAtOnceToTheInterfaceThatHadIt) {
  json fabric = Fabric();
  fabric["rails"] = json::parse(
      R"([{"name": "rail0", "pf": 0, "subnet": "10.9.0.0/24", "nodeSubnet": 31, "gateway": "other"}])");
  fabric["addresses"] = json::object();
  SetFabric(fabric);
  const auto call = [&](const char* verb, const std::string& container, const std::string& mac) {
    json config = Config("rail0");
    config["ipam"]["mac"] = mac;
    return RunIpam(scratch_.path(), {verb, container, config.dump()});
  };
  const std::string mine = "02:00:00:00:00:01";
  const std::string other = "02:00:00:00:00:02";
  EXPECT_EQ(call("ADD", "a", mine).status, 0);
  EXPECT_EQ(call("ADD", "b", mine).Json()["code"], 105) << "it is in use";
  EXPECT_EQ(call("DEL", "a", mine).status, 0);
  for (const char* container : {"c", "d", "e"}) {
    const Answer again = call("ADD", container, mine);
    EXPECT_EQ(again.status, 0) << again.out;
    EXPECT_EQ(call("DEL", container, mine).status, 0);
  }
  const Answer refused = call("ADD", "f", other);
  EXPECT_EQ(refused.Json()["code"], 105) << refused.out;
  EXPECT_NE(refused.out.find("free again in"), std::string::npos) << "it says how long: " << refused.out;
  fabric["addresses"] = {{"minReuseDelaySeconds", 0}};
  SetFabric(fabric);
  EXPECT_EQ(call("ADD", "f", other).status, 0);
  EXPECT_EQ(call("DEL", "f", other).status, 0);
  fabric["addresses"] = json::object();
  SetFabric(fabric);
  EXPECT_EQ(call("ADD", "g", mine).Json()["code"], 105) << "another one had it since";
}

TEST_F(RailTest, AGatewayOutsideOfTheNodesNetworkIsNamed) {
  json fabric = Fabric();
  fabric["rails"] = json::parse(
      R"([{"name": "rail0", "pf": 0, "subnet": "10.9.0.0/24", "nodeSubnet": 26, "gateway": "10.9.0.129"}])");
  SetFabric(fabric);
  const Answer refused = Add("a");
  EXPECT_EQ(refused.Json()["code"], 7);
  EXPECT_NE(
      refused.out.find("rail 'rail0': its gateway 10.9.0.129 is outside the node's network 10.9.0.0/26"),
      std::string::npos)
      << refused.out;
}

TEST_F(RailTest, AddressGatewayAndRoutesOfTheRail) {
  const Answer added = Add("a");
  ASSERT_EQ(added.status, 0) << added.out;
  EXPECT_EQ(added.Json()["ips"], json::array({{{"address", "10.100.0.10/24"}, {"gateway", "10.100.0.254"}}}));
  EXPECT_EQ(added.Json()["routes"], json::array({{{"dst", "10.0.0.0/8"}, {"gw", "10.100.0.254"}},
                                                 {{"dst", "192.168.0.0/16"}, {"gw", "10.100.0.254"}}}));
}

TEST_F(RailTest, OnlyThisNodesRangeWithoutTheExclusions) {
  EXPECT_EQ(Add("a").Address(), "10.100.0.10/24");
  EXPECT_EQ(Add("b").Address(), "10.100.0.12/24");
  EXPECT_EQ(Add("c").Address(), "10.100.0.13/24");
  EXPECT_NE(Add("d").Error().find("105: no free address in 10.100.0.10, 10.100.0.12-10.100.0.13"),
            std::string::npos)
      << Add("d").Error();
}

TEST_F(RailTest, ByIndexOfTheNode) {
  SetNode("beta");
  EXPECT_EQ(Add("a").Address(), "10.100.0.115/24");
}

TEST_F(RailTest, ByBlockOfTheNode) {
  EXPECT_EQ(Add("a", "rail1").Address(), "10.101.0.2/24");  // .0 is the network, .1 the gateway
  SetNode("beta");
  EXPECT_EQ(Add("b", "rail1").Address(), "10.101.0.112/24");
}

TEST_F(RailTest, WithoutARangeForThisNode) {
  const std::map<std::string, std::string> missing = {{"rail0", "nodeRanges"}, {"rail1", "'nodes'"}};
  for (const auto& [rail, key] : missing) {
    SetNode("gamma");
    const std::string error = Add("a", rail).Error();
    EXPECT_EQ(error.substr(0, 2), "7:") << error;
    EXPECT_NE(error.find("node 'gamma'"), std::string::npos) << error;
    EXPECT_NE(error.find(key), std::string::npos) << error;
  }
}

TEST_F(RailTest, ByTheIndexThatTheNodeHasClaimed) {
  SetNode("gamma");
  json fabric = Fabric();
  fabric.erase("nodes");
  fabric["rails"][0]["nodeRanges"].erase("alpha");
  SetFabric(fabric);
  const std::string neither = Add("a", "rail1").Error();
  EXPECT_EQ(neither.substr(0, 2), "7:") << neither;
  EXPECT_NE(neither.find("neither 'nodes' nor addresses.index.from kubernetes"), std::string::npos)
      << neither;
  fabric["addresses"]["index"] = {{"from", "kubernetes"}};
  SetFabric(fabric);
  const std::string early = Add("a", "rail1").Error();
  EXPECT_EQ(early.substr(0, 3), "11:") << early;
  NodeIndex index{.node = "gamma", .index = 7, .claimed = true, .fence = std::chrono::hours(1)};
  const auto clock = ReadNodeIndexClock(scratch_.root());
  ASSERT_TRUE(clock) << Describe(clock.error());
  index.boot = "another boot";
  index.boottime_ms = clock->boottime_ms;
  index.wall = clock->wall;
  ASSERT_TRUE(kNodeIndexFile.Write(scratch_.root(), index));
  const std::string unconfirmed = Add("a", "rail1").Error();
  EXPECT_EQ(unconfirmed.substr(0, 3), "11:") << unconfirmed;
  index.boot = clock->boot;
  ASSERT_TRUE(kNodeIndexFile.Write(scratch_.root(), index));
  EXPECT_EQ(Add("a", "rail1").Address(), "10.101.0.112/24");
  EXPECT_EQ(Add("b", "rail0").Address(), "10.100.0.115/24");
}

TEST_F(RailTest, TheFabricsReuseDelayHoldsAndTheConfigurationOverridesIt) {
  for (const char* container : {"a", "b", "c"}) Add(container);
  ASSERT_EQ(RunIpam(scratch_.path(), {"DEL", "b", Config("rail0").dump()}).status, 0);
  json longer = Config("rail0");
  longer["ipam"]["reuseDelaySeconds"] = 1000;
  EXPECT_NE(RunIpam(scratch_.path(), {"ADD", "d", longer.dump()}).Error().find("cooling down 1"),
            std::string::npos);
  EXPECT_EQ(Add("d").Address(), "10.100.0.12/24");
}

// Until just now, pods of another node may have had the addresses of this node's new part.
TEST_F(RailTest, AnotherPartOfTheRailWaits) {
  json fabric = Fabric();
  fabric["addresses"]["reuseDelaySeconds"] = 3600;
  SetFabric(fabric);
  EXPECT_EQ(Add("a", "rail1").Address(), "10.101.0.2/24");
  fabric["nodes"]["alpha"] = 3;
  SetFabric(fabric);
  // Else the runtime would report the node as not ready, and no ADD would begin the time.
  const auto status = [&] {
    return RunIpam(scratch_.path(), {"STATUS", "", Config("rail1").dump(), "", ""});
  };
  EXPECT_EQ(status().status, 0) << status().out;
  const std::string refused = Add("b", "rail1").Error();
  EXPECT_EQ(refused.substr(0, 3), "11:") << refused;
  EXPECT_EQ(status().status, 0) << status().out;
  EXPECT_NE(refused.find("part of rail rail1 has changed, to 10.101.0.48-10.101.0.63"), std::string::npos)
      << refused;
  EXPECT_EQ(Add("c", "rail0").Address(), "10.100.0.10/24") << "ranges by name stay";
  fabric["addresses"]["reuseDelaySeconds"] = 0;
  SetFabric(fabric);
  EXPECT_EQ(Add("b", "rail1").Address(), "10.101.0.48/24");
}

// Two networks, each with a fabric of its own, are no changes of one part.
TEST_F(RailTest, AFabricThatOnlyANetworkNamesHasNoPart) {
  json fabric = Fabric();
  fabric["addresses"]["reuseDelaySeconds"] = 3600;
  SetFabric(fabric);
  fabric["rails"][1]["subnet"] = "10.109.0.0/24";
  fabric["rails"][1]["gateway"] = "10.109.0.1";
  scratch_.Write("/etc/railhead/other.json", fabric.dump());
  json other = Config("rail1");
  other["ipam"]["fabric"] = "/etc/railhead/other.json";
  for (int i = 0; i < 3; ++i) {
    const std::string pod = std::to_string(i);
    EXPECT_EQ(Add("own" + pod, "rail1").Address(), "10.101.0." + std::to_string(2 + i) + "/24");
    const Answer added = RunIpam(scratch_.path(), {"ADD", "other" + pod, other.dump()});
    EXPECT_EQ(added.Address(), "10.109.0." + std::to_string(2 + i) + "/24") << added.out;
  }
}

TEST_F(RailTest, RailsThatAreNone) {
  EXPECT_EQ(Add("a", "raill0").Error(),
            "7: network configuration: /ipam/rail: /etc/railhead/fabric.json has no rail 'raill0'; did you "
            "mean 'rail0'?");
  EXPECT_NE(Add("a", "zzz").Error().find("it has: rail0, rail1, bare"), std::string::npos);
  EXPECT_EQ(Add("a", "bare").Error(),
            "7: /etc/railhead/fabric.json: rail 'bare' has no subnet; add 'subnet' to the rail");
}

// Each message says why this node has no range, and asks for what is missing alone.
TEST_F(RailTest, NodesWithoutARange) {
  SetNode("beta");
  const std::string begin =
      "7: /etc/railhead/fabric.json: rail 'rail1' has no address range for node 'beta': ";
  const auto error = [&](const auto& change) {
    json fabric = Fabric();
    change(fabric, fabric["rails"][1]);
    SetFabric(fabric);
    const std::string text = Add("a", "rail1").Error();
    EXPECT_EQ(text.rfind(begin, 0), 0U) << text;
    return text.substr(std::min(begin.size(), text.size()));
  };
  EXPECT_EQ(error([](json& fabric, json&) { fabric["nodes"]["beta"] = 16; }),
            "index 16 is beyond the 16 blocks of 10.101.0.0/24; give the node an unused index below 16 in "
            "nodes, or "
            "the rail a larger subnet or smaller blocks");
  EXPECT_EQ(error([](json&, json& rail) {
              rail.erase("nodeBlock");
            }).rfind("nothing divides its subnet among the nodes; give the rail a nodeBlock", 0),
            0U);
  const std::string unlisted = error([](json& fabric, json&) { fabric["nodes"].erase("beta"); });
  EXPECT_EQ(unlisted.rfind("'nodes' does not list 'beta'; list the node in nodes", 0), 0U) << unlisted;
  EXPECT_NE(unlisted.find("/etc/railhead/node-name"), std::string::npos) << unlisted;
  EXPECT_EQ(error([](json& fabric, json&) { fabric.erase("nodes"); }).rfind("nodes have no index: ", 0), 0U);
  EXPECT_EQ(error([](json&, json& rail) {
              rail.erase("nodeBlock");
              rail["nodeRanges"] = {{"alpha", "10.101.0.8/29"}};
            }).rfind("nodeRanges has neither 'beta' nor its index 7; add the node to nodeRanges", 0),
            0U);
}

TEST_F(RailTest, ABrokenFabricIsNamedByPointerAndDelStillWorks) {
  ASSERT_EQ(Add("a").status, 0);
  json fabric = Fabric();
  fabric["rails"][1]["vlan"] = 4095;
  SetFabric(fabric);
  EXPECT_NE(Add("b").Error().find("fabric.json: /rails/1/vlan: 4095 is out of range"), std::string::npos)
      << Add("b").Error();
  scratch_.Write("/etc/railhead/fabric.json", "{\"version\": 1,");
  EXPECT_EQ(Add("b").Error().substr(0, 2), "6:") << Add("b").Error();
  EXPECT_EQ(RunIpam(scratch_.path(), {"DEL", "a", Config("rail0").dump()}).status, 0);
  SetFabric(Fabric());
  EXPECT_EQ(RunIpam(scratch_.path(), {"CHECK", "a", Config("rail0").dump()}).status, 1);
}

TEST_F(RailTest, AMissingFabric) {
  json config = Config("rail0");
  config["ipam"]["fabric"] = "/etc/railhead/other.json";
  const std::string error = RunIpam(scratch_.path(), {"ADD", "a", config.dump()}).Error();
  EXPECT_EQ(error.substr(0, 2), "7:") << error;
  EXPECT_NE(error.find("/etc/railhead/other.json"), std::string::npos) << error;
}

TEST_F(RailTest, RailheadsOwnFabricFieldIsFollowed) {
  json fabric = Fabric();
  fabric["rails"][0]["nodeRanges"] = {{"alpha", "10.100.0.77"}};
  scratch_.Write("/etc/railhead/other.json", fabric.dump());
  json config = Config("rail0");
  config["fabric"] = "/etc/railhead/other.json";
  EXPECT_EQ(RunIpam(scratch_.path(), {"ADD", "a", config.dump()}).Address(), "10.100.0.77/24");
  // Below another plugin the field is that plugin's.
  config["type"] = "macvlan";
  EXPECT_EQ(RunIpam(scratch_.path(), {"ADD", "b", config.dump()}).Address(), "10.100.0.10/24");
}

}  // namespace
}  // namespace railhead::testing

// A fabric that there is already: it is kept, and the suggestion adds to it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cni/fabric/fabric.h"
#include "deviceplugin/tools/fabric_suggest/suggest.h"
#include "tests/unit/deviceplugin/tools/fabric_suggest/nodes.h"
#include "tests/unit/deviceplugin/tools/fabric_suggest/suggestions.h"

namespace railhead::testing {
namespace {

using fabric_suggest::NodeObservation;
using fabric_suggest::Suggest;
using fabric_suggest::Suggestion;
using fabric_suggest::SuggestOptions;
using Json = nlohmann::ordered_json;

// As a person changed what was suggested for two nodes: other names and order, and sections that no
// suggestion has.
Json WrittenByHand() {
  Json json = Json::parse(Suggest(GpuNodes(2)).fabric);
  json["rails"][0]["name"] = "blue";
  json["rails"][1]["name"] = "red";
  json["rails"][1]["trafficClass"] = 104;
  std::swap(json["rails"][0], json["rails"][1]);
  json["policy"] = {{"networks", {{{"namespaces", {"train"}}, {"allow", {"vlan"}}}}}};
  json["pools"] = {{{"resource", "a.io/x"}, {"rails", {"red", "blue", "rail2", "rail3"}}}};
  return json;
}

Suggestion Rerun(const Json& present, const std::vector<NodeObservation>& nodes) {
  SuggestOptions options;
  options.present = present.dump();
  const auto valid = ParseFabric(options.present, "present");
  EXPECT_TRUE(valid) << Describe(valid.error());
  return Suggest(nodes, options);
}

TEST(SuggestPresentTest, ARerunChangesNothing) {
  const Json present = WrittenByHand();
  const Suggestion again = Rerun(present, GpuNodes(2));
  EXPECT_EQ(Contradictions(again), Texts{});
  EXPECT_EQ(Json::parse(again.fabric), present);
  EXPECT_EQ(Json::parse(Rerun(present, {GpuNode(1)}).fabric), present) << "nodes that were not asked stay";
}

TEST(SuggestPresentTest, NewNodesGetFreeNumbers) {
  Json present = WrittenByHand();
  present["nodes"] = {{"gpu-001", 7}, {"gpu-000", 2}};
  for (Json& rail : present["rails"]) rail.erase("exclude");
  auto nodes = GpuNodes(4);
  for (auto& node : nodes) {
    for (auto& pf : node.pfs) pf.networks.clear();
  }
  const Suggestion again = Rerun(present, nodes);
  EXPECT_EQ(Contradictions(again), Texts{});
  EXPECT_EQ(Parsed(again).nodes,
            (std::map<std::string, int>{{"gpu-000", 2}, {"gpu-001", 7}, {"gpu-002", 0}, {"gpu-003", 1}}));
}

TEST(SuggestPresentTest, ANewPfIsANewRail) {
  Json present = WrittenByHand();
  present["rails"].erase(3);
  present["rails"][2]["name"] = "rail7";
  present["rails"][2]["table"] = 107;
  present["rails"][6]["name"] = "green";
  present["pools"][0]["rails"] = {"red"};
  const Suggestion again = Rerun(present, GpuNodes(2));
  const Fabric fabric = Parsed(again);
  ASSERT_EQ(fabric.rails.size(), 8U);
  const Rail& added = fabric.rails[7];
  EXPECT_EQ(added.name, "rail8") << "rail7 is another one";
  EXPECT_EQ(added.pfs, Texts{"ens3f0"});
  EXPECT_EQ(added.subnet, IpPrefix::Parse("10.103.0.0/16"));
  EXPECT_EQ(added.table, 108U);
  EXPECT_EQ(Contradictions(again),
            Texts{"rail8: no pool of the fabric has it, so no pod gets it: add it to one"});
  present.erase("pools");
  EXPECT_EQ(Contradictions(Rerun(present, GpuNodes(2))), Texts{}) << "the default pool has all rails";
}

TEST(SuggestPresentTest, WhatDiffersIsNamedAndKept) {
  Json present = WrittenByHand();
  Json& rail = present["rails"][2];
  rail["mtu"] = 4200;
  rail["gateway"] = "10.102.0.9";
  rail["exclude"] = {"10.102.0.1"};
  rail["expectedSwitches"] = {"su9-*"};
  present["rails"][3]["subnet"] = "10.9.0.0/16";
  present["rails"][3].erase("gateway");
  present["rails"][3].erase("routes");
  present["rails"][3].erase("exclude");
  present["rails"][4]["vlan"] = 44;
  present["rails"][5]["pf"] = "gone";
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) node.pfs[6].vf_vlan = 66;
  const Suggestion again = Rerun(present, nodes);
  EXPECT_EQ(
      Contradictions(again),
      (Texts{"rail5: no node has a PF for it", "rail2: the fabric has mtu 4200, the nodes show 9000",
             "rail2: it is connected to su1-leaf2, which expectedSwitches of the fabric lacks",
             "rail2: the fabric has gateway 10.102.0.9, the nodes show 10.102.255.254",
             "rail2: hosts have 1 addresses, first 10.102.0.2, that the fabric may give to pods: exclude "
             "lacks them",
             "rail3: the fabric has subnet 10.9.0.0/16, the nodes show 10.103.0.0/16",
             "rail6: the fabric has vlan none, the nodes show 66",
             "rail8: its subnet 10.105.0.0/16 overlaps the one of rail5: both would give the same addresses; "
             "--supernet gives each rail its own",
             "rail8: no pool of the fabric has it, so no pod gets it: add it to one"}));
  Json now = Json::parse(again.fabric);
  now["rails"].erase(8);
  EXPECT_EQ(now["rails"], present["rails"]);
}

TEST(SuggestPresentTest, SwappedPfsAreNamed) {
  Json present = WrittenByHand();
  present["rails"][6]["pf"] = "ens7f0";
  present["rails"][7]["pf"] = {"ens6f0"};
  EXPECT_EQ(Contradictions(Rerun(present, GpuNodes(2))),
            (Texts{"rail6: it is connected to su1-leaf7, which expectedSwitches of the fabric lacks",
                   "rail6: the fabric has subnet 10.106.0.0/16, the nodes show 10.107.0.0/16",
                   "rail7: it is connected to su1-leaf6, which expectedSwitches of the fabric lacks",
                   "rail7: the fabric has subnet 10.107.0.0/16, the nodes show 10.106.0.0/16"}));
}

TEST(SuggestPresentTest, NodesOfAnotherKindByTheFabric) {
  auto nodes = GpuNodes(2);
  for (std::size_t i = 0; i < nodes[1].pfs.size(); ++i) {
    auto& pf = nodes[1].pfs[i];
    pf.device = "0001:0" + std::to_string(i) + ":00.0";
    pf.netdev = "enp" + std::to_string(i);
    pf.neighbor.reset();
    pf.networks.clear();
  }
  Json present = WrittenByHand();
  for (std::size_t i = 0; i < 8; ++i)
    present["rails"][i]["pf"] = {present["rails"][i]["pf"], "enp" + std::to_string(7 - i)};
  EXPECT_EQ(Contradictions(Rerun(present, nodes)), Texts{});
  present["rails"][2]["pf"] = "ens2f0";
  EXPECT_EQ(Contradictions(Rerun(present, nodes)).front(),
            "rail2: gpu-001: the fabric finds no rail for the PF 0001:05:00.0");
}

TEST(SuggestPresentTest, RailsThatNoSuggestionWouldHave) {
  auto nodes = GpuNodes(2);
  const Json present = WrittenByHand();
  for (auto& node : nodes) {
    node.pfs[7].path = "SYS";     // for storage
    node.pfs[6].is_rdma = false;  // soft RoCE
  }
  Json soft = present;
  soft["rails"][6]["softRoce"] = true;
  const Suggestion again = Rerun(soft, nodes);
  EXPECT_EQ(Contradictions(again), Texts{});
  EXPECT_EQ(Parsed(again).rails.size(), 8U);
}

// Of all values in `json`.
void ListPaths(const Json& json, const Json::json_pointer& at, std::vector<Json::json_pointer>* paths) {
  if (!at.empty()) paths->push_back(at);
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) ListPaths(value, at / key, paths);
}

// null is as if it were absent, and helm makes of "no value" a null.
TEST(SuggestPresentTest, AnyKeyMayBeNull) {
  Json present = WrittenByHand();
  present["provision"] = {{"vfs", 8}, {"rails", {{"red", {{"vfs", 4}}}}}};
  std::vector<Json::json_pointer> paths;
  ListPaths(present, Json::json_pointer(), &paths);
  int valid = 0;
  for (const auto& path : paths) {
    Json json = present;
    // A list's element cannot be left out by a null.
    if (json.at(path.parent_pointer()).is_array()) continue;
    json.at(path) = nullptr;
    SuggestOptions options;
    options.present = json.dump();
    if (!ParseFabric(options.present, "present")) continue;
    ++valid;
    const Suggestion again = Suggest(GpuNodes(3), options);
    const auto fabric = ParseFabric(again.fabric, "suggested");
    EXPECT_TRUE(fabric) << path << ": " << Describe(fabric.error());
  }
  EXPECT_GT(valid, 40);
}

TEST(SuggestPresentTest, TheMostVfsNeedAddresses) {
  Json present = WrittenByHand();
  present["rails"].erase(7);
  present["pools"] = nullptr;
  const auto block = [&](const Json& vfs) {
    present["provision"] = {{"vfs", vfs}};
    return Parsed(Rerun(present, GpuNodes(2))).rails.at(7).node_block;
  };
  EXPECT_EQ(block("max"), block(16)) << "each PF can have 16";
  EXPECT_NE(block("max"), block(4));
}

TEST(SuggestPresentTest, ANewPfOfANodeWithoutAcceleratorsIsANewRail) {
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) {
    node.accelerators = 0;
    for (auto& pf : node.pfs) pf.path.clear();
  }
  Json present = WrittenByHand();
  present["rails"].erase(7);
  present["pools"] = nullptr;
  const Suggestion again = Rerun(present, nodes);
  EXPECT_EQ(Parsed(again).rails.size(), 8U);
  for (const auto& guess : GuessesOf(again, "/rails"))
    EXPECT_EQ(guess.reason.find("shares no PCIe switch"), std::string::npos);
}

TEST(SuggestPresentTest, HoweverExclusionsAreWritten) {
  const auto index_of = [](const Json& exclude) {
    Json present = WrittenByHand();
    present["nodes"] = {{"gpu-000", 0}};
    for (Json& rail : present["rails"]) rail["exclude"] = exclude;
    for (int i = 0; i < 8; ++i) {
      Json& rail = present["rails"][static_cast<std::size_t>(i)];
      rail["subnet"] = "10." + std::to_string(100 + i) + ".0.0/16";
      rail["gateway"] = nullptr;
      rail["routes"] = nullptr;
      rail["nodeBlock"] = 28;
      for (Json& range : rail["exclude"]) {
        const std::string text = range.get<std::string>();
        const std::string net = "10." + std::to_string(100 + i) + ".0.";
        const auto dash = text.find('-');
        range = dash == std::string::npos ? net + text
                                          : net + text.substr(0, dash) + "-" + net + text.substr(dash + 1);
      }
    }
    return Parsed(Rerun(present, GpuNodes(2))).nodes.at("gpu-001");
  };
  EXPECT_EQ(index_of({"16-31"}), 2);
  EXPECT_EQ(index_of({"16-28", "20-31"}), 2) << "they overlap";
  EXPECT_EQ(index_of({"20-31", "16-28", "16-31"}), 2);
  EXPECT_EQ(index_of({"16-22"}), 1) << "nine are left for eight VFs";
  EXPECT_EQ(index_of({"16-24"}), 2) << "seven are left";
}

// Not prefix by prefix.
TEST(SuggestPresentTest, ATakenSubnetIsPassedAtOnce) {
  Json present = WrittenByHand();
  present["rails"].erase(7);
  present["pools"] = nullptr;
  Json& rail = present["rails"][0];
  rail["subnet"] = "fd00::/32";
  rail["gateway"] = rail["routes"] = rail["exclude"] = rail["nodeBlock"] = nullptr;
  SuggestOptions options = WithSupernet("fd00::/16", 64);
  options.present = present.dump();
  EXPECT_EQ(Parsed(Suggest(GpuNodes(2), options)).rails[7].subnet, IpPrefix::Parse("fd00:1::/64"));
}

TEST(SuggestPresentTest, NewRailsGetWhatIsFreeOfTheSupernet) {
  Json present = WrittenByHand();
  present["rails"].erase(7);
  present["pools"] = Json::array();
  present.erase("pools");
  SuggestOptions options = WithSupernet("10.100.0.0/13", 16);
  options.supernet = IpPrefix::Parse("10.96.0.0/12");
  options.present = present.dump();
  EXPECT_EQ(Parsed(Suggest(GpuNodes(2), options)).rails[7].subnet, IpPrefix::Parse("10.96.0.0/16"));
  options.supernet = IpPrefix::Parse("10.100.0.0/14");
  EXPECT_EQ(Contradictions(Suggest(GpuNodes(2), options)).front(),
            "10.100.0.0/14 has only 0 subnets for 1 rails");
}

}  // namespace
}  // namespace railhead::testing

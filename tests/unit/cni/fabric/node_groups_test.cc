// The fabric of a node by a base with groups: properties over random bases, and the cases that these do not
// show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric_base.h"
#include "cni/fabric/fabric_shape.h"
#include "cni/fabric/node_pattern.h"
#include "netns/json/record_io.h"
#include "tests/support/seed.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::ordered_json;

std::string Base(const std::string& groups, const std::string& more = "") {
  return R"({"version": 1, "rails": [
      {"name": "rail0", "pf": "pf0", "mtu": 9000},
      {"name": "rail1", "pf": "pf1", "expectedSwitches": ["a", "b"]},
      {"name": "rail2", "pf": "pf2"}])" +
         (more.empty() ? "" : ", " + more) + R"(, "nodeGroups": )" + groups + "}";
}

Fabric Of(const std::string& node, const std::string& base) {
  auto fabric = ParseFabricOf(node, base, "f");
  if (!fabric) {
    ADD_FAILURE() << Describe(fabric.error());
    return {};
  }
  return *std::move(fabric);
}

std::string ErrorOf(const std::string& node, const std::string& base) {
  const auto fabric = ParseFabricOf(node, base, "f");
  return fabric ? "" : Describe(fabric.error());
}

TEST(NodePatternTest, MatchesAsItIsDocumented) {
  EXPECT_TRUE(MatchesNodePattern("gpu-*", "gpu-"));
  EXPECT_TRUE(MatchesNodePattern("*-1*2?", "su-1-1-22"));
  EXPECT_FALSE(MatchesNodePattern("gpu-?", "gpu-"));
  EXPECT_FALSE(MatchesNodePattern("gpu", "gpu-1"));
  EXPECT_TRUE(MatchesNodePattern("gpu-[001-032]", "gpu-032"));
  EXPECT_FALSE(MatchesNodePattern("gpu-[001-032]", "gpu-033"));
  EXPECT_FALSE(MatchesNodePattern("gpu-[001-032]", "gpu-32"));
  EXPECT_FALSE(MatchesNodePattern("gpu-[01-32]", "gpu-032"));
  EXPECT_TRUE(MatchesNodePattern("*[1-3]*", "a9b2c"));
  EXPECT_FALSE(MatchesNodePattern("*[1-3]", ""));
}

TEST(NodePatternTest, EachFaultIsNamed) {
  for (const char* wrong : {"", "a[", "a[1-", "a[1]", "a[3-1]", "a[01-2]", "a[a-b]", "a]", "[-]", "[1-2-3]"})
    EXPECT_NE(FaultOfNodePattern(wrong), "") << wrong;
  for (const char* right : {"a", "*", "?", "[0-9]", "x[001-100]-*[5-5]"})
    EXPECT_EQ(FaultOfNodePattern(right), "") << right;
}

// Beside regular expressions. All short patterns of a few characters, all short names.
TEST(NodePatternTest, MatchesAsARegularExpressionWould) {
  const std::vector<std::string> elements = {"a", "1", "*", "?", "[1-2]"};
  const std::vector<std::string> expressions = {"a", "1", ".*", ".", "[1-2]"};
  std::vector<std::string> names = {""};
  for (std::size_t i = 0; names[i].size() < 4; ++i) {
    for (const char c : {'a', '1', '2'}) names.push_back(names[i] + c);
  }
  for (int number = 0; number < 625; ++number) {
    std::string pattern;
    std::string expression;
    for (int left = number, i = 0; i < 4; ++i, left /= 5) {
      pattern += elements[static_cast<std::size_t>(left % 5)];
      expression += expressions[static_cast<std::size_t>(left % 5)];
    }
    const std::regex regex(expression);
    for (const std::string& name : names)
      ASSERT_EQ(MatchesNodePattern(pattern, name), std::regex_match(name, regex)) << pattern << " " << name;
  }
}

TEST(NodeGroupsTest, WithoutGroupsTheTextIsTheNodes) {
  const std::string text = R"({ "version":1, "rails":[{"name":"rail0","pf":0}] })";
  const auto base = FabricBase::Parse(text, "f");
  ASSERT_TRUE(base);
  EXPECT_EQ(base->TextOf("n"), text);
}

TEST(NodeGroupsTest, AreMergedKeyByKey) {
  const std::string base = Base(R"([
      {"name": "su1", "nodes": "gpu-[01-02]", "indices": "4-7",
       "rails": {"rail0": {"subnet": "10.0.1.0/24", "nodeBlock": 26, "gateway": "10.0.1.254"}}},
      {"name": "old", "nodes": ["gpu-02", "gpu-03"],
       "rails": {"rail0": {"mtu": null}, "rail1": {"expectedSwitches": ["c"]}},
       "ncclConfig": {"env": {"NCCL_DEBUG": "INFO"}}}])",
                                R"("ncclConfig": {"stacks": ["ucx"]})");
  const Fabric both = Of("gpu-02", base);
  EXPECT_EQ(both.of_node->groups, (std::vector<std::string>{"su1", "old"}));
  EXPECT_EQ(both.rails[0].mtu, std::nullopt);
  EXPECT_EQ(both.rails[0].subnet->ToString(), "10.0.1.0/24");
  EXPECT_EQ(both.rails[1].expected_switches, std::vector<std::string>{"c"});
  EXPECT_EQ(both.nccl_config_options.stacks, (std::set{CommunicationStack::kUcx}));
  EXPECT_EQ(both.nccl_config_options.env.size(), 1U);
  EXPECT_EQ(both.rails[0].RangesOf("gpu-02", 5), (std::vector<IpRange>{*IpRange::Parse("10.0.1.64/26")}));
  EXPECT_TRUE(both.rails[0].RangesOf("gpu-02", 3).empty());
  EXPECT_FALSE(both.of_node->MayHave(3));
  const Fabric first = Of("gpu-01", base);
  EXPECT_EQ(first.rails[0].mtu, 9000);
  EXPECT_EQ(first.rails[1].expected_switches, (std::vector<std::string>{"a", "b"}));
  const Fabric none = Of("other", base);
  EXPECT_FALSE(none.rails[0].subnet);
  EXPECT_TRUE(none.of_node->MayHave(3));
  EXPECT_FALSE(none.of_node->MayHave(4)) << "an index of a group that does not have the node";
}

// What all leaf switches have in common stands once, in the base.
TEST(NodeGroupsTest, AGroupMayCompleteARailOfTheBase) {
  const std::string rails =
      R"({"version": 1, "rails": [{"name": "rail0", "pf": "pf0", "nodeBlock": 28, "routes": ["10.0.0.0/8"]}])";
  const std::string base = rails + R"(, "nodeGroups": [{"name": "su1", "nodes": "x", "indices": "0-7",
      "rails": {"rail0": {"subnet": "10.0.1.0/24", "gateway": "10.0.1.254"}}}]})";
  EXPECT_EQ(Of("x", base).rails[0].RangesOf("x", 1), (std::vector<IpRange>{*IpRange::Parse("10.0.1.16/28")}));
  EXPECT_FALSE(Of("y", base).rails[0].subnet) << "no group gives it one";
  EXPECT_FALSE(ParseFabric(rails + "}", "f")) << "without groups, nothing completes it";
}

TEST(NodeGroupsTest, ARailThatIsTakenAwayLeavesTheOthersTheirTables) {
  const std::string base = Base(R"([{"name": "six", "nodes": "x", "rails": {"rail1": false}}])");
  const Fabric without = Of("x", base);
  ASSERT_EQ(without.rails.size(), 2U);
  EXPECT_EQ(without.rails[1].name, "rail2");
  EXPECT_EQ(without.rails[1].table, Of("y", base).rails[2].table);
}

TEST(NodeGroupsTest, AContradictionNamesBothGroupsAndTheKey) {
  const std::string base = Base(R"([
      {"name": "a", "nodes": "x*", "rails": {"rail0": {"mtu": 1500}}, "reachability": {"enabled": true}},
      {"name": "b", "nodes": "*y", "rails": {"rail0": {"mtu": 4200}}},
      {"name": "c", "nodes": "z", "rails": {"rail0": false}},
      {"name": "d", "nodes": "z", "rails": {"rail0": {"mtu": 1}}},
      {"name": "e", "nodes": "w", "indices": "0-3"},
      {"name": "f", "nodes": "w", "indices": "4-7"},
      {"name": "g", "nodes": "v", "rails": {"rail0": {"mtu": 1500}}},
      {"name": "h", "nodes": "v", "rails": {"rail0": {"mtu": 1500}}}])");
  EXPECT_EQ(
      ErrorOf("xy", base),
      "f, node 'xy' with groups 'a', 'b': groups 'a', 'b' give /rails/rail0/mtu different values; give it "
      "in one of them, or let no node be in both");
  EXPECT_NE(ErrorOf("z", base).find("groups 'c', 'd' give /rails/rail0 different values"), std::string::npos);
  EXPECT_NE(ErrorOf("w", base).find("groups 'e', 'f' give it different indices"), std::string::npos);
  EXPECT_EQ(Of("v", base).rails[0].mtu, 1500);
  EXPECT_EQ(Of("x", base).rails[0].mtu, 1500);
}

TEST(NodeGroupsTest, WhatIsWrongWithTheFormIsNamed) {
  const auto fault = [](const std::string& groups, const std::string& more = "") {
    const auto base = FabricBase::Parse(Base(groups, more), "f");
    return base ? "" : Describe(base.error());
  };
  EXPECT_NE(fault(R"([{"name": "a", "nodes": "x"}, {"name": "a", "nodes": "y"}])").find("/nodeGroups/1/name"),
            std::string::npos);
  EXPECT_NE(fault(R"([{"name": "a", "nodes": "x["}])").find("/nodeGroups/0/nodes/0: the pattern 'x['"),
            std::string::npos);
  EXPECT_NE(fault(R"([{"name": "a", "nodes": "x", "indices": "7-3"}])").find("/nodeGroups/0/indices"),
            std::string::npos);
  EXPECT_NE(
      fault(R"([{"name": "a", "nodes": "x", "indices": "0-4"}, {"name": "b", "nodes": "y", "indices": "4"}])")
          .find("4 overlaps 0-4 of group 'a'"),
      std::string::npos);
  EXPECT_NE(
      fault(R"([{"name": "a", "nodes": "x", "rails": {"rail9": {}}}])").find("the base has no rail 'rail9'"),
      std::string::npos);
  EXPECT_NE(
      fault(R"([{"name": "a", "nodes": "x", "rails": {"rail0": true}}])").find("neither an object nor false"),
      std::string::npos);
  EXPECT_NE(fault(R"([{"name": "a", "nodes": "x", "policy": {}}])").find("/nodeGroups/0/policy: unknown"),
            std::string::npos);
  EXPECT_NE(fault(R"([{"name": "a", "nodes": "x", "rails": {"rail0": {"index": 3}}}])")
                .find("/nodeGroups/0/rails/rail0/index"),
            std::string::npos);
  EXPECT_FALSE(ParseFabric(R"({"version": 1, "rails": [{"name": "r", "pf": 0, "index": 3}]})", "f"));
  EXPECT_NE(fault(R"([{"name": "a", "nodes": []}])").find("/nodeGroups/0/nodes"), std::string::npos);
  EXPECT_NE(fault(R"([{"name": "a", "nodes": "x"}])", R"("node": {"name": "x"})").find("cannot stand beside"),
            std::string::npos);
}

TEST(NodeGroupsTest, SubnetsThatCouldGiveAnAddressTwiceAreNamed) {
  const auto conflicts = [](const std::string& groups) {
    const auto base = FabricBase::Parse(Base(groups), "f");
    EXPECT_TRUE(base);
    std::string all;
    if (base) {
      for (const Error& error : base->SubnetConflicts()) all += Describe(error) + "\n";
    }
    return all;
  };
  const auto group = [](const std::string& name, const std::string& indices, const std::string& rail,
                        const std::string& subnet) {
    return R"({"name": ")" + name + R"(", "nodes": ")" + name + "\"" +
           (indices.empty() ? "" : R"(, "indices": ")" + indices + "\"") + R"(, "rails": {")" + rail +
           R"(": {"nodeBlock": 28, "subnet": ")" + subnet + "\"}}}";
  };
  EXPECT_EQ(conflicts("[" + group("a", "0-3", "rail0", "10.0.0.0/24") + "," +
                      group("b", "4-7", "rail0", "10.0.1.0/24") + "]"),
            "");
  EXPECT_NE(conflicts("[" + group("a", "0-3", "rail0", "10.0.0.0/24") + "," +
                      group("b", "4-7", "rail1", "10.0.0.0/16") + "]")
                .find("/nodeGroups/1/rails/rail1/subnet: 10.0.0.0/16 overlaps 10.0.0.0/24 of rail 'rail0' of "
                      "group 'a'"),
            std::string::npos);
  EXPECT_NE(conflicts("[" + group("a", "", "rail0", "10.0.0.0/24") + "]").find("needs the group's `indices`"),
            std::string::npos);
}

TEST(NodeGroupsTest, AListedIndexIsOneOfTheNodesGroup) {
  const std::string base = Base(R"([{"name": "a", "nodes": "x*", "indices": "4-7"}])",
                                R"("nodes": {"x1": 3, "x2": 4, "y": 5, "z": 8})");
  EXPECT_NE(ErrorOf("x1", base).find("index 3 in nodes is not one of group 'a', 4-7"), std::string::npos);
  EXPECT_EQ(ErrorOf("x2", base), "");
  EXPECT_NE(ErrorOf("y", base).find("index 5 in nodes is one of group 'a'"), std::string::npos);
  EXPECT_EQ(ErrorOf("z", base), "");
}

// As `fabric suggest` writes the fabric that it began with.
TEST(NodeGroupsTest, AWrittenBaseIsTheOneThatWasRead) {
  const std::string base =
      Base(R"([{"name": "a", "nodes": ["x"], "indices": "4", "reachability": null, "health": false,
      "rails": {"rail0": {"mtu": null}, "rail1": false}}])");
  const auto read = ParseFabric(base, "f");
  ASSERT_TRUE(read) << Describe(read.error());
  const auto text = FormatRecord(*read, "fabric");
  ASSERT_TRUE(text);
  EXPECT_EQ(ParseFabric(*text, "f"), *read) << *text;
  EXPECT_EQ(read->node_groups[0].overrides.at("reachability"), "null");
}

TEST(NodeGroupsTest, ThisNodeReadsItsOwnFabricFromAFileWithGroups) {
  const TempRoot root;
  root.Write("/etc/railhead/node-name", "x\n");
  root.Write(kFabricPath, Base(R"([{"name": "a", "nodes": "x", "rails": {"rail0": {"vlan": 7}}}])"));
  const auto fabric = ReadFabric(root.root());
  ASSERT_TRUE(fabric && *fabric) << Describe(fabric.error());
  EXPECT_EQ((*fabric)->rails[0].vlan, 7);
}

// Random bases: some groups by leaf, with subnets and indices of their own, some by hardware, without.
class AnyBase {
 public:
  explicit AnyBase(std::uint64_t seed) : random_(seed) {}

  Json Make() {
    Json base{{"version", 1}, {"rails", Json::array()}, {"nodeGroups", Json::array()}};
    const std::uint64_t rails = 1 + Below(3);
    leaves_ = 1 + Below(4);
    for (std::uint64_t i = 0; i < rails; ++i) {
      Json rail{{"name", "rail" + std::to_string(i)}, {"pf", i}};
      rail["subnet"] = "10." + std::to_string(100 + i) + ".0.0/20";
      if (Below(2) == 0) {
        rail["nodeBlock"] = 28;
      } else {
        rail["nodeSubnet"] = 27 + Below(5);
      }
      if (Below(3) != 0) rail["gateway"] = Below(2) == 0 ? "first" : "last";
      if (rail.contains("gateway") && Below(3) == 0) rail["routes"] = "rails";
      base["rails"].push_back(rail);
    }
    base["rails"].push_back({{"name", "spare"}, {"pf", 9}});
    for (std::uint64_t leaf = 0; leaf < leaves_; ++leaf) base["nodeGroups"].push_back(MakeLeaf(leaf, rails));
    for (std::uint64_t kind = Below(3); kind > 0; --kind) {
      Json group{{"name", "kind" + std::to_string(kind)}, {"nodes", "*k" + std::to_string(kind) + "*"}};
      if (Below(2) == 0) group["rails"]["rail0"]["mtu"] = 4200;
      if (Below(2) == 0) group["ncclConfig"]["env"]["NCCL_KIND" + std::to_string(kind)] = "1";
      if (Below(3) == 0) group["rails"]["spare"] = false;
      base["nodeGroups"].push_back(group);
    }
    for (std::uint64_t left = base["nodeGroups"].size(); left > 1; --left)
      std::swap(base["nodeGroups"][left - 1], base["nodeGroups"][Below(left)]);
    return base;
  }

  std::string NodeName() {
    return "leaf" + std::to_string(Below(leaves_ + 1)) + "-k" + std::to_string(Below(4)) + "-" +
           std::to_string(Below(1000));
  }
  std::uint64_t Below(std::uint64_t end) {
    return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random_);
  }

 private:
  Json MakeLeaf(std::uint64_t leaf, std::uint64_t rails) {
    const std::uint64_t first = 64 + leaf * 20 + Below(3);
    Json group{{"name", "leaf" + std::to_string(leaf)}, {"nodes", "leaf" + std::to_string(leaf) + "-*"}};
    group["indices"] = std::to_string(first) + "-" + std::to_string(first + 1 + Below(16));
    for (std::uint64_t i = 0; i < rails; ++i) {
      group["rails"]["rail" + std::to_string(i)]["subnet"] =
          "10." + std::to_string(100 + i) + "." + std::to_string(128 + leaf) + ".0/24";
    }
    return group;
  }

  std::mt19937_64 random_;
  std::uint64_t leaves_ = 1;
};

// Nodes reach each other on the link, if their rail is one network, else by a route through the node's own
// gateway.
void ExpectWays(const std::vector<std::pair<Rail, IpRange>>& nodes) {
  for (const auto& [rail, own] : nodes) {
    const IpPrefix network = rail.NetworkOf(own.first);
    EXPECT_TRUE(network.Contains(own.first) && network.Contains(own.last));
    if (!rail.gateway) continue;
    ASSERT_TRUE(rail.GatewayOf(network));
    for (const auto& [other, peer] : nodes) {
      if (other.name != rail.name || peer == own) continue;
      const bool is_behind = std::ranges::any_of(
          rail.routes, [first = peer.first](const IpPrefix& route) { return route.Contains(first); });
      EXPECT_TRUE(network.Contains(peer.first) || is_behind) << network.ToString() << " " << peer.ToString();
      if (rail.node_subnet) EXPECT_FALSE(network.Contains(peer.first)) << "a peer is taken for on-link";
    }
  }
}

void ExpectPartsOfTheirOwn(const FabricBase& base, const std::map<std::string, int>& nodes) {
  std::vector<std::pair<IpRange, std::string>> given;
  std::vector<std::pair<Rail, IpRange>> parts;
  for (const auto& [node, index] : nodes) {
    const auto fabric = base.FabricOf(node);
    ASSERT_TRUE(fabric) << Describe(fabric.error());
    for (const Rail& rail : fabric->rails) {
      for (const IpRange& range : rail.RangesOf(node, index)) {
        ASSERT_TRUE(rail.subnet->Contains(range.first) && rail.subnet->Contains(range.last));
        for (const auto& [other, owner] : given)
          ASSERT_TRUE(range.last < other.first || other.last < range.first)
              << node << " and " << owner << " give " << range.ToString();
        given.emplace_back(range, node);
        parts.emplace_back(rail, range);
      }
    }
  }
  ExpectWays(parts);
}

TEST(NodeGroupsTest, NoTwoNodesOwnOneAddressAndOrderMeansNothing) {
  const std::uint64_t first = Seed();
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    AnyBase any(first + seed);
    const Json json = any.Make();
    const auto base = FabricBase::Parse(json.dump(), "f");
    ASSERT_TRUE(base) << Describe(base.error()) << json.dump();
    ASSERT_TRUE(base->SubnetConflicts().empty()) << json.dump();
    Json turned = json;
    std::reverse(turned["nodeGroups"].begin(), turned["nodeGroups"].end());
    const auto other = FabricBase::Parse(turned.dump(), "f");
    ASSERT_TRUE(other);
    std::map<std::string, int> nodes;
    std::set<int> taken;
    for (int i = 0; i < 12; ++i) {
      const std::string node = any.NodeName();
      auto fabric = base->FabricOf(node);
      ASSERT_TRUE(fabric) << Describe(fabric.error());
      auto same = other->FabricOf(node);
      ASSERT_TRUE(same);
      std::ranges::reverse(same->of_node->groups);
      EXPECT_EQ(*fabric, *same);
      EXPECT_EQ(ParseFabric(*base->TextOf(node), "f"), *fabric)
          << "what a node installs is what it would read";
      // As the claim of an index does it (index_claim.h): one that nobody has, and that fits.
      for (int index = 0; index < 200 && !nodes.contains(node); ++index) {
        if (fabric->of_node->MayHave(index) && taken.insert(index).second) nodes.emplace(node, index);
      }
    }
    ExpectPartsOfTheirOwn(*base, nodes);
  }
}

}  // namespace
}  // namespace railhead::testing

// Which PFs are rails, and which of them have wrong cables.
#include "deviceplugin/tools/fabric_suggest/suggest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "netns/base/text.h"
#include "tests/unit/deviceplugin/tools/fabric_suggest/nodes.h"
#include "tests/unit/deviceplugin/tools/fabric_suggest/suggestions.h"

namespace railhead::testing {
namespace {

using fabric_suggest::Certainty;
using fabric_suggest::NodeObservation;
using fabric_suggest::Suggest;
using fabric_suggest::Suggestion;
using fabric_suggest::SuggestOptions;

TEST(SuggestTest, TwoNodesWithEightRails) {
  const Suggestion suggestion = Suggest(GpuNodes(2));
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  const Fabric fabric = Parsed(suggestion);
  ASSERT_EQ(fabric.rails.size(), 8U);
  EXPECT_EQ(fabric.nodes, (std::map<std::string, int>{{"gpu-000", 0}, {"gpu-001", 1}}));
  const Rail& rail = fabric.rails[3];
  EXPECT_EQ(rail.name, "rail3");
  EXPECT_EQ(rail.pfs, Texts{"ens3f0"});
  EXPECT_EQ(rail.mtu, 9000);
  EXPECT_EQ(rail.vlan, std::nullopt);
  EXPECT_EQ(rail.subnet, IpPrefix::Parse("10.103.0.0/16"));
  EXPECT_EQ(rail.gateway, Gateway::Parse("10.103.255.254"));
  EXPECT_EQ(rail.routes, std::vector{*IpPrefix::Parse("10.96.0.0/11")});
  EXPECT_EQ(rail.exclude, std::vector{*IpRange::Parse("10.103.0.1-10.103.0.2")});
  EXPECT_EQ(rail.node_block, 28) << "two addresses for each of 8 VFs";
  EXPECT_EQ(rail.expected_switches, Texts{"su1-leaf3"});
  EXPECT_EQ(nlohmann::json::parse(fabric.provision), nlohmann::json({{"vfs", 8}}));
  ASSERT_EQ(fabric.pools.size(), 1U) << "the default one";
  EXPECT_EQ(fabric.pools[0].device, PoolDevice::kVf);
}

TEST(SuggestTest, EachValueHasAGuessWithItsReason) {
  const Suggestion suggestion = Suggest(GpuNodes(2));
  const auto json = nlohmann::json::parse(suggestion.fabric);
  for (const auto& [key, value] : json["rails"][3].items()) {
    if (key == "name") continue;
    const auto guesses = GuessesOf(suggestion, "/rails/3/" + key);
    ASSERT_EQ(guesses.size(), 1U) << key;
    EXPECT_EQ(guesses[0].rail, "rail3");
    EXPECT_FALSE(guesses[0].reason.empty()) << key;
  }
  for (const char* field : {"/rails", "/nodes", "/provision/vfs"})
    EXPECT_EQ(GuessesOf(suggestion, field).size(), 1U) << field;
  EXPECT_EQ(GuessesOf(suggestion, "/rails/3/mtu")[0].certainty, Certainty::kHigh);
}

TEST(SuggestTest, OneNodeAloneExpectsNoSwitches) {
  const Suggestion suggestion = Suggest(GpuNodes(1));
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  EXPECT_TRUE(Parsed(suggestion).rails[0].expected_switches.empty());
}

TEST(SuggestTest, SwappedCablesAreNamed) {
  auto nodes = GpuNodes(4);
  std::swap(nodes[2].pfs[1].neighbor, nodes[2].pfs[5].neighbor);
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(
      Contradictions(suggestion),
      (Texts{
          "rail1: gpu-002: it is connected to su1-leaf5 port swp3, the switch of rail5: swapped with rail5",
          "rail5: gpu-002: it is connected to su1-leaf1 port swp3, the switch of rail1: swapped with "
          "rail1"}));
  EXPECT_EQ(Parsed(suggestion).rails[1].expected_switches, Texts{"su1-leaf1"});
}

TEST(SuggestTest, SwappedCablesOfOneNodeOfTwo) {
  auto nodes = GpuNodes(2);
  std::swap(nodes[1].pfs[0].neighbor, nodes[1].pfs[1].neighbor);
  for (auto& node : nodes) node.pfs.resize(2);
  const auto lines = Contradictions(Suggest(nodes));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].starts_with("rail0: gpu-001: ")) << "the first node counts as right: " << lines[0];
}

TEST(SuggestTest, ACableInASwitchOfNobodyElse) {
  auto nodes = GpuNodes(3);
  nodes[0].pfs[6].neighbor->system_name = "mgmt-sw1";
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(
      Contradictions(suggestion),
      Texts{"rail6: gpu-000: it is connected to mgmt-sw1 port swp1; nodes with the same other switches are "
            "connected to su1-leaf6"});
  EXPECT_EQ(Parsed(suggestion).rails[6].expected_switches, Texts{"su1-leaf6"});
}

TEST(SuggestTest, ScalableUnitsHaveTheirOwnSwitches) {
  auto nodes = GpuNodes(6);
  for (int number = 3; number < 6; ++number) {
    for (int rail = 0; rail < kPfs; ++rail)
      nodes[static_cast<std::size_t>(number)].pfs[static_cast<std::size_t>(rail)].neighbor->system_name =
          "su2-leaf" + std::to_string(rail);
  }
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  EXPECT_EQ(Parsed(suggestion).rails[7].expected_switches, (Texts{"su1-leaf7", "su2-leaf7"}));
}

TEST(SuggestTest, AllRailsOnOneSwitch) {
  auto nodes = GpuNodes(3);
  for (auto& node : nodes) {
    for (auto& pf : node.pfs) pf.neighbor->system_name = "lab[1]";
  }
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  EXPECT_EQ(Parsed(suggestion).rails[0].expected_switches, Texts{"lab\\[1]"}) << "a pattern";
}

TEST(SuggestTest, AMissingPf) {
  auto nodes = GpuNodes(3);
  nodes[2].pfs.erase(nodes[2].pfs.begin() + 4);
  nodes[1].pfs[6].is_rdma = false;
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion), (Texts{"rail4: gpu-002: the PF 0000:50:00.0 is not there",
                                               "rail6: gpu-001: the PF 0000:70:00.0 has no RDMA device"}));
  const Fabric fabric = Parsed(suggestion);
  ASSERT_EQ(fabric.rails.size(), 8U);
  EXPECT_EQ(fabric.rails[6].pfs, Texts{"ens6f0"});
}

TEST(SuggestTest, APfThatOnlyOneNodeHas) {
  auto nodes = GpuNodes(3);
  nodes[1].pfs.push_back(PlainPf(9));
  EXPECT_EQ(Contradictions(Suggest(nodes)),
            Texts{"gpu-001: the PF 0000:a0:00.0 is not on most nodes of this kind, so it has no rail"});
}

TEST(SuggestTest, APfOfTheHostGetsNoRail) {
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) {
    node.pfs[0].default_route = true;
    node.pfs[1].link_type = "infiniband";
    node.pfs[2].master = "bond0";
  }
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  const Fabric fabric = Parsed(suggestion);
  ASSERT_EQ(fabric.rails.size(), 5U);
  EXPECT_EQ(fabric.rails[0].pfs, Texts{"ens3f0"});
}

TEST(SuggestTest, PfsAwayFromAcceleratorsAreForStorage) {
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) node.pfs[3].path = "NODE";
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Parsed(suggestion).rails.size(), 7U);
  const auto lines = LinesOf(suggestion.guesses);
  EXPECT_TRUE(
      Contains(lines,
               "no rail of 0000:40:00.0 (medium): it shares no PCIe switch with an accelerator, as others "
               "do; --all-pfs takes it"))
      << Join(lines, "\n");
  SuggestOptions options;
  options.all_pfs = true;
  EXPECT_EQ(Parsed(Suggest(nodes, options)).rails.size(), 8U);
}

TEST(SuggestTest, ANodeWithoutLldp) {
  auto nodes = GpuNodes(3);
  for (auto& pf : nodes[1].pfs) pf.neighbor.reset();
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  EXPECT_EQ(Parsed(suggestion).rails[0].expected_switches, Texts{"su1-leaf0"});
  EXPECT_EQ(GuessesOf(suggestion, "/rails/0/expectedSwitches")[0].reason,
            "LLDP frames named them on 2 of 3 nodes");
}

// Another board: other addresses and names, and in the reverse order of the switches.
std::vector<NodeObservation> WithOtherBoards(bool lldp) {
  auto nodes = GpuNodes(5);
  for (const std::size_t number : {3U, 4U}) {
    for (std::size_t rail = 0; rail < kPfs; ++rail) {
      auto& pf = nodes[number].pfs[rail];
      pf.device = "0001:0" + std::to_string(rail) + ":00.0";
      pf.netdev = "enp" + std::to_string(rail);
      pf.neighbor->system_name = "su1-leaf" + std::to_string(kPfs - 1 - rail);
      pf.networks = {RailNetwork(static_cast<int>(kPfs - 1 - rail), static_cast<int>(number))};
      if (!lldp) pf.neighbor.reset();
    }
  }
  return nodes;
}

TEST(SuggestTest, NodesOfAnotherKindByTheirSwitches) {
  const Suggestion suggestion = Suggest(WithOtherBoards(true));
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  const Fabric fabric = Parsed(suggestion);
  ASSERT_EQ(fabric.rails.size(), 8U);
  EXPECT_EQ(fabric.rails[0].pfs, (Texts{"ens0f0", "enp7"}));
  EXPECT_EQ(fabric.rails[7].pfs, (Texts{"ens7f0", "enp0"}));
}

TEST(SuggestTest, NodesOfAnotherKindByPosition) {
  const Suggestion suggestion = Suggest(WithOtherBoards(false));
  EXPECT_FALSE(Contradictions(suggestion).empty()) << "the subnets show that the order is another one";
  EXPECT_EQ(Parsed(suggestion).rails[0].pfs, (Texts{"ens0f0", "enp0"}));
}

TEST(SuggestTest, NamesThatMeanOtherPfsElsewhere) {
  auto nodes = GpuNodes(2);
  std::swap(nodes[1].pfs[0].netdev, nodes[1].pfs[1].netdev);
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  EXPECT_EQ(Parsed(suggestion).rails[0].pfs, Texts{"0000:10:00.0"});
}

TEST(SuggestTest, NoPfWithRdma) {
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) {
    for (auto& pf : node.pfs) pf.is_rdma = false;
  }
  EXPECT_EQ(Suggest(nodes).fabric, "");
  EXPECT_EQ(Suggest({}).fabric, "");
}

TEST(SuggestTest, OfOneNodeTheLaterObservation) {
  auto nodes = GpuNodes(1);
  nodes.push_back(nodes[0]);
  nodes[0].time += std::chrono::hours(1);
  nodes[1].pfs.clear();
  EXPECT_EQ(Parsed(Suggest(nodes)).rails.size(), 8U);
  std::swap(nodes[0], nodes[1]);
  EXPECT_EQ(Parsed(Suggest(nodes)).rails.size(), 8U);
}

// Guesses of several rails share a line.
TEST(SuggestTest, LinesForPeople) {
  const auto lines = LinesOf(Suggest(GpuNodes(2)).guesses);
  EXPECT_TRUE(Contains(lines, "rail[0-7]: mtu 9000 (high): the PFs of the nodes have it"))
      << Join(lines, "\n");
  EXPECT_TRUE(
      Contains(lines, "rail1: subnet 10.101.0.0/16 (medium): the hosts have such addresses on the PFs"))
      << Join(lines, "\n");
}

}  // namespace
}  // namespace railhead::testing

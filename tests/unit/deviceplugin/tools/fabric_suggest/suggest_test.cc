// The fabric that is suggested from what nodes show.
#include "deviceplugin/tools/fabric_suggest/suggest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/provision/pf_plan.h"
#include "deviceplugin/tools/fabric_suggest/report.h"
#include "netns/base/text.h"
#include "tests/support/ipam/rapidcheck.h"
#include "tests/support/record_test.h"
#include "tests/unit/deviceplugin/tools/fabric_suggest/nodes.h"

namespace railhead::testing {
// Only its random values are used here.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecordTest);
namespace {

using fabric_suggest::Certainty;
using fabric_suggest::NodeObservation;
using fabric_suggest::Suggest;
using fabric_suggest::Suggestion;
using fabric_suggest::SuggestOptions;
using Texts = std::vector<std::string>;

Fabric Parsed(const Suggestion& suggestion) {
  const auto fabric = ParseFabric(suggestion.fabric, "suggested");
  EXPECT_TRUE(fabric) << Describe(fabric.error()) << "\n" << suggestion.fabric;
  return fabric.value_or(Fabric{});
}

Texts Contradictions(const Suggestion& suggestion) {
  return LinesOf(suggestion.contradictions);
}

// Of the field, by its JSON pointer.
std::vector<fabric_suggest::Guess> GuessesOf(const Suggestion& suggestion, const std::string& field) {
  std::vector<fabric_suggest::Guess> guesses;
  std::ranges::copy_if(suggestion.guesses, std::back_inserter(guesses),
                       [&](const auto& guess) { return guess.field == field; });
  return guesses;
}

SuggestOptions WithSupernet(const std::string& supernet, std::optional<int> prefix) {
  SuggestOptions options;
  options.supernet = IpPrefix::Parse(supernet);
  options.rail_prefix = prefix;
  return options;
}

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
  EXPECT_EQ(rail.gateway, IpAddress::Parse("10.103.255.254"));
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

TEST(SuggestTest, MtusThatDiffer) {
  auto nodes = GpuNodes(3);
  nodes[1].pfs[2].mtu = 1500;
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion),
            Texts{"rail2: gpu-001: the MTU of the PF is 1500, on other nodes 9000"});
  EXPECT_EQ(Parsed(suggestion).rails[2].mtu, 9000);
}

TEST(SuggestTest, AnMtuThatTheSwitchPortDoesNotTake) {
  auto nodes = GpuNodes(2);
  nodes[1].pfs[0].neighbor->max_frame = 1518;
  EXPECT_EQ(Contradictions(Suggest(nodes)),
            Texts{"rail0: gpu-001: the MTU is 9000, but the switch port takes frames of at most 1518 bytes"});
}

TEST(SuggestTest, ASmallMtuOnLargePortsIsUncertain) {
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) node.pfs[0].mtu = 1500;
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  EXPECT_EQ(GuessesOf(suggestion, "/rails/0/mtu")[0].certainty, Certainty::kLow);
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

TEST(SuggestTest, Supernet) {
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) {
    for (auto& pf : node.pfs) pf.networks.clear();
  }
  SuggestOptions options = WithSupernet("10.104.0.0/13", 16);
  options.gateway = fabric_suggest::GatewayPlace::kLast;
  const Suggestion suggestion = Suggest(nodes, options);
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  const Rail rail = Parsed(suggestion).rails[7];
  EXPECT_EQ(rail.subnet, IpPrefix::Parse("10.111.0.0/16"));
  EXPECT_EQ(rail.gateway, IpAddress::Parse("10.111.255.254"));
  EXPECT_EQ(rail.routes, std::vector{*IpPrefix::Parse("10.104.0.0/13")});
  EXPECT_EQ(rail.node_block, 28);

  options = WithSupernet("fd00:1::/48", std::nullopt);
  options.gateway = fabric_suggest::GatewayPlace::kFirst;
  const Rail v6 = Parsed(Suggest(nodes, options)).rails[1];
  EXPECT_EQ(v6.subnet, IpPrefix::Parse("fd00:1:0:2000::/51"));
  EXPECT_EQ(v6.gateway, IpAddress::Parse("fd00:1:0:2000::1"));
  EXPECT_EQ(v6.node_block, 124);
}

TEST(SuggestTest, ASupernetThatIsTooSmall) {
  EXPECT_EQ(Contradictions(Suggest(GpuNodes(1), WithSupernet("10.100.0.0/15", 16))),
            Texts{"10.100.0.0/15 has only 2 subnets for 8 rails"});
  auto nodes = GpuNodes(20);
  const auto lines = Contradictions(Suggest(nodes, WithSupernet("10.0.0.0/22", 25)));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0], "rail0: 10.0.0.0/25 is too small for 20 nodes with 8 devices each");
}

TEST(SuggestTest, NoNodeHasABlockThatHostsFill) {
  const Suggestion suggestion = Suggest(GpuNodes(40));  // .1 to .40, and blocks of 16
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  const Fabric fabric = Parsed(suggestion);
  EXPECT_EQ(fabric.nodes.size(), 40U);
  EXPECT_EQ(fabric.nodes.at("gpu-000"), 3);
  EXPECT_EQ(fabric.nodes.at("gpu-039"), 42);
}

TEST(SuggestTest, HostsLeaveTooFewBlocks) {
  auto nodes = GpuNodes(2);
  auto& addresses = nodes[0].pfs[0].networks[0].addresses;
  addresses.clear();
  for (const char* address : {"1", "2", "3", "4", "5", "6"})
    addresses.push_back(*IpPrefix::Parse(std::string("10.100.0.") + address + "/27"));
  nodes[1].pfs[0].networks[0].addresses = {*IpPrefix::Parse("10.100.0.30/27")};
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion),
            Texts{"gpu-001: the hosts' addresses leave it no block with an address for each device"});
  EXPECT_EQ(Parsed(suggestion).nodes, (std::map<std::string, int>{{"gpu-000", 1}, {"gpu-001", 0}}));
}

TEST(SuggestTest, VfsOfSomeNodesShowLittle) {
  auto nodes = GpuNodes(3);
  for (auto& pf : nodes[0].pfs) pf.vfs = 1;
  for (auto& pf : nodes[1].pfs) pf.vfs = 0;
  for (auto& pf : nodes[2].pfs) pf.vfs = 0;
  const auto guesses = GuessesOf(Suggest(nodes), "/provision/vfs");
  ASSERT_EQ(guesses.size(), 1U);
  EXPECT_EQ(guesses[0].value, "1");
  EXPECT_EQ(guesses[0].certainty, Certainty::kLow);
}

TEST(SuggestTest, WrongOptions) {
  const auto is_right = [](const SuggestOptions& options) { return CheckOptions(options).has_value(); };
  EXPECT_TRUE(is_right({}));
  EXPECT_TRUE(is_right(WithSupernet("10.104.0.0/13", 16)));
  EXPECT_FALSE(is_right(WithSupernet("10.100.0.0/13", 16))) << "host bits";
  EXPECT_FALSE(is_right(WithSupernet("10.104.0.0/13", 12)));
  EXPECT_FALSE(is_right(WithSupernet("10.104.0.0/13", 31)));
  EXPECT_FALSE(is_right(WithSupernet("0.0.0.0/0", 16)));
  SuggestOptions alone;
  alone.rail_prefix = 16;
  EXPECT_FALSE(is_right(alone));
}

TEST(SuggestTest, WithoutAddresses) {
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) {
    for (auto& pf : node.pfs) pf.networks.clear();
  }
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  const Fabric fabric = Parsed(suggestion);
  EXPECT_EQ(fabric.rails[0].subnet, std::nullopt);
  EXPECT_TRUE(fabric.nodes.empty()) << "no blocks, no numbers";
  EXPECT_EQ(GuessesOf(suggestion, "/rails/0/subnet")[0].certainty, Certainty::kLow);
}

TEST(SuggestTest, RailsWithOneSubnet) {
  auto nodes = GpuNodes(1);
  nodes[0].pfs.resize(2);
  nodes[0].pfs[1].networks[0].addresses = {*IpPrefix::Parse("10.100.0.9/16")};
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(
      Contradictions(suggestion),
      Texts{"rail1: its subnet 10.100.0.0/16 overlaps the one of rail0: both would give the same addresses; "
            "--supernet gives each rail its own"});
  const Fabric fabric = Parsed(suggestion);
  EXPECT_EQ(fabric.rails[1].subnet, std::nullopt);
  EXPECT_EQ(fabric.rails[0].exclude.size(), 2U) << "the host has both addresses";
}

TEST(SuggestTest, SubnetsAndGatewaysThatDiffer) {
  auto nodes = GpuNodes(3);
  nodes[1].pfs[0].networks[0].addresses = {*IpPrefix::Parse("10.90.0.2/16")};
  nodes[2].pfs[1].networks[0].routes[0].gateway = *IpAddress::Parse("10.101.0.254");
  EXPECT_EQ(
      Contradictions(Suggest(nodes)),
      (Texts{"rail0: gpu-001: the subnet of the host's address is 10.90.0.0/16, on other nodes 10.100.0.0/16",
             "rail1: gpu-002: the gateway is 10.101.0.254, on other nodes 10.101.255.254"}));
}

TEST(SuggestTest, LinksToASingleHostGiveNoSubnet) {
  auto nodes = GpuNodes(1);
  nodes[0].pfs[0].networks[0].addresses = {*IpPrefix::Parse("10.0.0.1/31"), *IpPrefix::Parse("10.0.0.9/32")};
  EXPECT_EQ(Parsed(Suggest(nodes)).rails[0].subnet, std::nullopt);
}

TEST(SuggestTest, VlanOfTheVfsAndOfVlanDevices) {
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) {
    node.pfs[0].vf_vlan = 100;
    node.pfs[1].networks[0].vlan = 201;
    node.pfs[2].neighbor->port_vlan = 302;
  }
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  const Fabric fabric = Parsed(suggestion);
  EXPECT_EQ(fabric.rails[0].vlan, 100);
  EXPECT_EQ(fabric.rails[0].subnet, std::nullopt) << "the host's network is the untagged one";
  EXPECT_EQ(fabric.rails[1].vlan, 201);
  EXPECT_EQ(fabric.rails[1].subnet, IpPrefix::Parse("10.101.0.0/16"));
  EXPECT_EQ(fabric.rails[2].vlan, std::nullopt) << "untagged frames are in VLAN 302 already";
  EXPECT_EQ(GuessesOf(suggestion, "/rails/2/vlan")[0].reason,
            "the switch port puts untagged frames into VLAN 302");
}

TEST(SuggestTest, VlansThatDiffer) {
  auto nodes = GpuNodes(3);
  for (auto& node : nodes) {
    node.pfs[0].neighbor->port_vlan = 100;
    node.pfs[1].vf_vlan = 7;
  }
  nodes[2].pfs[0].neighbor->port_vlan = 1;
  nodes[0].pfs[1].vf_vlan = 8;
  EXPECT_EQ(Contradictions(Suggest(nodes)),
            (Texts{"rail0: gpu-002: the VLAN of the switch port is 1, on other nodes 100",
                   "rail1: gpu-000: the VLAN is 8, on other nodes 7"}));
}

TEST(SuggestTest, WithoutVfsOneForEachAccelerator) {
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) {
    node.accelerators = 6;
    for (auto& pf : node.pfs) pf.vfs = 0;
    node.pfs[3].most_vfs = 4;
  }
  const Fabric fabric = Parsed(Suggest(nodes));
  EXPECT_EQ(nlohmann::json::parse(fabric.provision),
            nlohmann::json::parse(R"({"vfs": 6, "rails": {"rail3": {"vfs": 4}}})"));
}

TEST(SuggestTest, WithoutSriovWholePfs) {
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) {
    for (auto& pf : node.pfs) {
      pf.networks.clear();
      pf.vfs = pf.most_vfs = 0;
    }
  }
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  const Fabric fabric = Parsed(suggestion);
  ASSERT_EQ(fabric.pools.size(), 1U);
  EXPECT_EQ(fabric.pools[0].device, PoolDevice::kPf);
  EXPECT_EQ(fabric.provision, "");
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

TEST(SuggestReportTest, IsReadAgain) {
  fabric_suggest::SuggestReport report;
  report.observations = GpuNodes(2);
  Suggestion suggestion = Suggest(report.observations);
  report.fabric = suggestion.fabric;
  report.guesses = suggestion.guesses;
  const std::string text = record::Dump(ToJson(report), 2);
  EXPECT_EQ(nlohmann::json::parse(text)["fabric"], nlohmann::json::parse(suggestion.fabric));
  std::istringstream in(text);
  std::vector<NodeObservation> read;
  const auto gathered = fabric_suggest::GatherObservations(in, "text", &read);
  ASSERT_TRUE(gathered) << Describe(gathered.error());
  EXPECT_EQ(read, report.observations);
  std::istringstream again(text);
  EXPECT_FALSE(fabric_suggest::GatherObservations(again, "text", &read)) << "the same nodes";
  std::istringstream wrong(R"({"version": 1, "observations": [{"node": ""}]})");
  EXPECT_FALSE(fabric_suggest::GatherObservations(wrong, "text", &read));
}

// What a node may show: mostly as others, in places anything.
NodeObservation AnyNode(AnyRecord& any, int number) {
  if (any.Below(12) == 0) return any.Of<NodeObservation>();
  NodeObservation node = GpuNode(number);
  node.pfs.resize(1 + any.Below(kPfs));
  for (std::uint64_t changes = any.Below(6); changes > 0; --changes) {
    auto& pf = node.pfs[any.Below(node.pfs.size())];
    const auto other = any.Of<fabric_suggest::ObservedPf>();
    switch (any.Below(10)) {
      case 0:
        pf = other;
        break;
      case 1:
        pf.netdev = other.netdev;
        break;
      case 2:
        pf.device = other.device;
        break;
      case 3:
        pf.networks = other.networks;
        break;
      case 4:
        pf.neighbor = other.neighbor;
        break;
      case 5:
        pf.mtu = other.mtu;
        break;
      case 6:
        pf.vfs = other.vfs;
        pf.most_vfs = other.most_vfs;
        break;
      case 7:
        pf.vf_vlan = other.vf_vlan;
        break;
      case 8:
        pf.path = any.Below(2) == 0 ? "SYS" : "";
        break;
      default:
        std::swap(pf.neighbor, node.pfs[any.Below(node.pfs.size())].neighbor);
    }
  }
  return node;
}

SuggestOptions AnyOptions(AnyRecord& any) {
  SuggestOptions options;
  if (any.Below(2) == 0) {
    const bool v6 = any.Below(3) == 0;
    const int bits = v6 ? 128 : 32;
    const int length = 8 + static_cast<int>(any.Below(static_cast<std::uint64_t>(bits) - 9));
    options.supernet = IpPrefix{*IpAddress::Parse(v6 ? "fd00::7" : "10.100.3.1"), length}.Network();
    if (any.Below(2) == 0) options.rail_prefix = length + static_cast<int>(any.Below(8));
  }
  options.gateway = static_cast<fabric_suggest::GatewayPlace>(any.Below(3));
  options.all_pfs = any.Below(2) == 0;
  return options;
}

TEST(SuggestPropertyTest, TheFabricIsValidAndTheOrderOfNodesMakesNoDifference) {
  ExpectProperty([] {
    AnyRecord any(*rc::gen::arbitrary<std::uint64_t>());
    std::vector<NodeObservation> nodes;
    for (auto count = static_cast<int>(any.Below(7)); count > 0; --count)
      nodes.push_back(AnyNode(any, count));
    SuggestOptions options = AnyOptions(any);
    if (!CheckOptions(options)) options = {};
    const Suggestion suggestion = Suggest(nodes, options);
    if (!suggestion.fabric.empty()) {
      std::vector<Error> errors;
      const auto fabric = ParseFabric(suggestion.fabric, "suggested", &errors);
      if (!fabric) RC_FAIL(Describe(fabric.error()) + "\n" + suggestion.fabric);
      const auto provision = provision::ReadProvisionSettings(*fabric, "suggested");
      if (!provision) RC_FAIL(Describe(provision.error()) + "\n" + suggestion.fabric);
    }
    std::mt19937_64 random(any.Below(1'000'000));
    std::ranges::shuffle(nodes, random);
    const Suggestion other = Suggest(nodes, options);
    RC_ASSERT(other.fabric == suggestion.fabric);
    RC_ASSERT(other.guesses == suggestion.guesses);
    RC_ASSERT(other.contradictions == suggestion.contradictions);
  });
}

}  // namespace
}  // namespace railhead::testing

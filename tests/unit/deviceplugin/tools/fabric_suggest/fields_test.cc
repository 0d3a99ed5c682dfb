// The values of the rails: MTU, VLAN, addresses, VFs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cni/fabric/fabric.h"
#include "deviceplugin/tools/fabric_suggest/suggest.h"
#include "tests/unit/deviceplugin/tools/fabric_suggest/nodes.h"
#include "tests/unit/deviceplugin/tools/fabric_suggest/suggestions.h"

namespace railhead::testing {
namespace {

using fabric_suggest::Certainty;
using fabric_suggest::Suggest;
using fabric_suggest::Suggestion;
using fabric_suggest::SuggestOptions;

TEST(SuggestFieldsTest, MtusThatDiffer) {
  auto nodes = GpuNodes(3);
  nodes[1].pfs[2].mtu = 1500;
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion),
            Texts{"rail2: gpu-001: the MTU of the PF is 1500, on other nodes 9000"});
  EXPECT_EQ(Parsed(suggestion).rails[2].mtu, 9000);
}

TEST(SuggestFieldsTest, AnMtuThatTheSwitchPortDoesNotTake) {
  auto nodes = GpuNodes(2);
  nodes[1].pfs[0].neighbor->max_frame = 1518;
  EXPECT_EQ(Contradictions(Suggest(nodes)),
            Texts{"rail0: gpu-001: the MTU is 9000, but the switch port takes frames of at most 1518 bytes"});
}

TEST(SuggestFieldsTest, ASmallMtuOnLargePortsIsUncertain) {
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) node.pfs[0].mtu = 1500;
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  EXPECT_EQ(GuessesOf(suggestion, "/rails/0/mtu")[0].certainty, Certainty::kLow);
}

TEST(SuggestFieldsTest, Supernet) {
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) {
    for (auto& pf : node.pfs) pf.networks.clear();
  }
  SuggestOptions options = WithSupernet("10.104.0.0/13", 16);
  options.gateway = Gateway::Parse("last");
  const Suggestion suggestion = Suggest(nodes, options);
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  const Rail rail = Parsed(suggestion).rails[7];
  EXPECT_EQ(rail.subnet, IpPrefix::Parse("10.111.0.0/16"));
  EXPECT_EQ(rail.gateway, Gateway::Parse("10.111.255.254"));
  EXPECT_EQ(rail.routes, std::vector{*IpPrefix::Parse("10.104.0.0/13")});
  EXPECT_EQ(rail.node_block, 28);

  options = WithSupernet("fd00:1::/48", std::nullopt);
  options.gateway = Gateway::Parse("first");
  const Rail v6 = Parsed(Suggest(nodes, options)).rails[1];
  EXPECT_EQ(v6.subnet, IpPrefix::Parse("fd00:1:0:2000::/51"));
  EXPECT_EQ(v6.gateway, Gateway::Parse("fd00:1:0:2000::1"));
  EXPECT_EQ(v6.node_block, 124);
}

TEST(SuggestFieldsTest, ASupernetThatIsTooSmall) {
  EXPECT_EQ(Contradictions(Suggest(GpuNodes(1), WithSupernet("10.100.0.0/15", 16))),
            Texts{"10.100.0.0/15 has only 2 subnets for 8 rails"});
  auto nodes = GpuNodes(20);
  const auto lines = Contradictions(Suggest(nodes, WithSupernet("10.0.0.0/22", 25)));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0], "rail0: 10.0.0.0/25 is too small for 20 nodes with 8 devices each");
}

TEST(SuggestFieldsTest, NoNodeHasABlockThatHostsFill) {
  const Suggestion suggestion = Suggest(GpuNodes(40));  // .1 to .40, and blocks of 16
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  const Fabric fabric = Parsed(suggestion);
  EXPECT_EQ(fabric.nodes.size(), 40U);
  EXPECT_EQ(fabric.nodes.at("gpu-000"), 3);
  EXPECT_EQ(fabric.nodes.at("gpu-039"), 42);
}

TEST(SuggestFieldsTest, HostsLeaveTooFewBlocks) {
  auto nodes = GpuNodes(2);
  auto& addresses = nodes[0].pfs[0].networks[0].addresses;
  addresses.clear();
  for (const char* address : {"1", "2", "3", "4", "5", "6", "7", "8"})
    addresses.push_back(*IpPrefix::Parse(std::string("10.100.0.") + address + "/27"));
  nodes[1].pfs[0].networks[0].addresses = {*IpPrefix::Parse("10.100.0.30/27")};
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion),
            Texts{"gpu-001: the hosts' addresses leave it no block with an address for each device"});
  EXPECT_EQ(Parsed(suggestion).nodes, (std::map<std::string, int>{{"gpu-000", 1}, {"gpu-001", 0}}));
}

TEST(SuggestFieldsTest, VfsOfSomeNodesShowLittle) {
  auto nodes = GpuNodes(3);
  for (auto& pf : nodes[0].pfs) pf.vfs = 1;
  for (auto& pf : nodes[1].pfs) pf.vfs = 0;
  for (auto& pf : nodes[2].pfs) pf.vfs = 0;
  const auto guesses = GuessesOf(Suggest(nodes), "/provision/vfs");
  ASSERT_EQ(guesses.size(), 1U);
  EXPECT_EQ(guesses[0].value, "1");
  EXPECT_EQ(guesses[0].certainty, Certainty::kLow);
}

TEST(SuggestFieldsTest, WrongOptions) {
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

TEST(SuggestFieldsTest, WithoutAddresses) {
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

TEST(SuggestFieldsTest, RailsWithOneSubnet) {
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

TEST(SuggestFieldsTest, SubnetsAndGatewaysThatDiffer) {
  auto nodes = GpuNodes(3);
  nodes[1].pfs[0].networks[0].addresses = {*IpPrefix::Parse("10.90.0.2/16")};
  nodes[2].pfs[1].networks[0].routes[0].gateway = *IpAddress::Parse("10.101.0.254");
  EXPECT_EQ(
      Contradictions(Suggest(nodes)),
      (Texts{"rail0: gpu-001: the subnet of the host's address is 10.90.0.0/16, on other nodes 10.100.0.0/16",
             "rail1: gpu-002: the gateway is 10.101.0.254, on other nodes 10.101.255.254"}));
}

TEST(SuggestFieldsTest, LinksToASingleHostGiveNoSubnet) {
  auto nodes = GpuNodes(1);
  nodes[0].pfs[0].networks[0].addresses = {*IpPrefix::Parse("10.0.0.1/31"), *IpPrefix::Parse("10.0.0.9/32")};
  EXPECT_EQ(Parsed(Suggest(nodes)).rails[0].subnet, std::nullopt);
}

TEST(SuggestFieldsTest, VlanOfTheVfsAndOfVlanDevices) {
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

TEST(SuggestFieldsTest, VlansThatDiffer) {
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

// Only rail0 has networks of the hosts, untagged ones.
TEST(SuggestFieldsTest, VlanThatTheSwitchPortsName) {
  auto nodes = GpuNodes(2);
  for (auto& node : nodes) {
    for (auto& pf : node.pfs) pf.neighbor->vlans = {201};
    for (std::size_t rail = 1; rail < node.pfs.size(); ++rail) node.pfs[rail].networks.clear();
    node.pfs[2].neighbor->port_vlan = 1;
    node.pfs[3].neighbor->vlans.insert(202);
  }
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion), Texts{});
  std::vector<std::optional<int>> vlans;
  for (const Rail& rail : Parsed(suggestion).rails) vlans.push_back(rail.vlan);
  vlans.resize(4);
  EXPECT_EQ(vlans, (std::vector<std::optional<int>>{std::nullopt, 201, std::nullopt, std::nullopt}));
  Texts lines;
  for (std::size_t rail = 0; rail < vlans.size(); ++rail) {
    const auto guesses = GuessesOf(suggestion, "/rails/" + std::to_string(rail) + "/vlan");
    for (const std::string& line : LinesOf(guesses)) lines.push_back(line);
  }
  EXPECT_EQ(
      lines,
      (Texts{
          "rail0: no vlan (low): the hosts' addresses are untagged, but the switch port names VLAN 201 and "
          "none of untagged frames",
          "rail1: vlan 201 (medium): the switch port names it and no VLAN of untagged frames",
          "rail2: no vlan (medium): the switch port puts untagged frames into VLAN 1",
          "rail3: no vlan (low): the switch port names several VLANs and none of untagged frames"}));
}

TEST(SuggestFieldsTest, SwitchPortsWithoutTheRailsVlan) {
  auto nodes = GpuNodes(6);
  for (auto& node : nodes) {
    node.pfs[0].vf_vlan = 201;
    node.pfs[1].networks.clear();
  }
  for (const std::size_t rail : {0, 1}) {
    const auto port = [&](std::size_t node) -> LldpNeighbor& { return *nodes[node].pfs[rail].neighbor; };
    for (const std::size_t node : {0, 1, 2, 3, 4}) port(node).vlans = {201};
    port(2).vlans = {202};
    port(3).vlans = {202, 203};
    port(4).port_vlan = 1;
    port(4).vlans = {1};
    port(5).vlans = {201, 202};
  }
  const Suggestion suggestion = Suggest(nodes);
  EXPECT_EQ(Contradictions(suggestion),
            (Texts{"rail0: gpu-002: the VLAN is 201, but the tagged VLANs of the switch port are 202",
                   "rail0: gpu-003: the VLAN is 201, but the tagged VLANs of the switch port are 202, 203",
                   "rail1: gpu-004: the VLAN of the switch port is 1, on other nodes 201 (tagged)",
                   "rail1: gpu-002: the VLAN of the switch port is 202 (tagged), on other nodes 201 (tagged)",
                   "rail1: gpu-003: the VLAN is 201, but the tagged VLANs of the switch port are 202, 203"}));
  EXPECT_EQ(Parsed(suggestion).rails[1].vlan, 201);
}

TEST(SuggestFieldsTest, WithoutVfsOneForEachAccelerator) {
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

TEST(SuggestFieldsTest, SoftRoce) {
  auto nodes = GpuNodes(3);
  for (auto& node : nodes) {
    node.pfs[1].is_rdma = false;
    node.pfs[1].soft_roce = true;
  }
  const Suggestion all = Suggest(nodes);
  EXPECT_EQ(Contradictions(all), Texts{});
  EXPECT_FALSE(Parsed(all).rails[0].soft_roce);
  EXPECT_TRUE(Parsed(all).rails[1].soft_roce);
  EXPECT_EQ(GuessesOf(all, "/rails/1/softRoce").size(), 1U);
  nodes[0].pfs[1].is_rdma = true;
  EXPECT_EQ(Contradictions(Suggest(nodes)),
            Texts{"rail1: gpu-000: the RDMA device is hardware, on other nodes soft RoCE"});
}

TEST(SuggestFieldsTest, WithoutSriovWholePfs) {
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

}  // namespace
}  // namespace railhead::testing

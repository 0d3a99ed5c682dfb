// Fabric, rails, cabling, MTU, ARP and probes.
#include "tests/unit/deviceplugin/tools/doctor/support.h"

namespace railhead::testing {
namespace {

using doctor::Status;

TEST(FabricChecksTest, ABrokenFabricIsAFailure) {
  doctor::NodeFacts node = GoodNode();
  node.fabric_error = Error{ErrorCode::kInvalid, "/rails/0/vlan: 4095 is out of range 0..4094", "", 0};
  Expect(doctor::CheckFabric(node), Status::kFailure, "/rails/0/vlan");
}

TEST(FabricChecksTest, WithoutFabric) {
  doctor::NodeFacts node = GoodNode();
  node.fabric = doctor::Fact<Fabric>::Unknown("there is none");
  Expect(doctor::CheckFabric(node), Status::kFailure, "no such file: /etc/railhead/fabric.json");
  node.sriovdp_config = true;
  Expect(doctor::CheckFabric(node), Status::kWarning, "every network may set VLAN, MAC");
}

TEST(FabricChecksTest, NamesRulesThatAreForEveryNetwork) {
  doctor::NodeFacts node = GoodNode();
  Fabric fabric = *node.fabric;
  NetworkRule rule;
  rule.keys = {"vlan"};
  rule.namespaces = {"team-a"};
  fabric.policy.rules = {rule};
  node.fabric = doctor::Fact<Fabric>(fabric);
  Expect(doctor::CheckFabric(node), Status::kOk, "2 rails");
  rule.namespaces.clear();
  fabric.policy.rules.push_back(rule);
  node.fabric = doctor::Fact<Fabric>(fabric);
  Expect(doctor::CheckFabric(node), Status::kNote, "policy.networks[1] is for every network");
}

TEST(FabricChecksTest, RailsThatTheNodeLacks) {
  doctor::NodeFacts node = GoodNode();
  node.pfs.pop_back();
  Expect(doctor::CheckRails(node), Status::kWarning, "no PF of this node is rail rail1");
  node.pfs.clear();
  Expect(doctor::CheckRails(node), Status::kFailure, "none of the fabric's rails");
}

TEST(IndexCheckTest, ListedClaimedAndMissing) {
  doctor::NodeFacts node = WithRail([](Rail* rail) { rail->node_block = 26; });
  Expect(doctor::CheckIndex(node), Status::kFailure, "gives this node no index");
  Fabric fabric = *node.fabric;
  fabric.nodes = {{"node1", 4}};
  node.fabric = fabric;
  Expect(doctor::CheckIndex(node), Status::kFailure, "gives this node no index");
  for (Rail& rail : fabric.rails) rail.node_ranges["node0"] = {};
  node.fabric = fabric;
  Expect(doctor::CheckIndex(node), Status::kOk, "no rail gives this node addresses by its index");
  for (Rail& rail : fabric.rails) rail.node_ranges.clear();
  fabric.nodes["node0"] = 7;
  node.fabric = fabric;
  node.index_problems = std::vector<NodeIndexProblem>{};
  Expect(doctor::CheckIndex(node), Status::kOk, "index 7 of `nodes`");
}

// Of a node with rails whose pods get no address, each ADD there fails.
TEST(IndexCheckTest, RailsWithoutAddresses) {
  doctor::NodeFacts node = WithRail([](Rail* rail) { rail->subnet = IpPrefix::Parse("10.0.0.0/16"); });
  node.index_problems = std::vector<NodeIndexProblem>{};
  Expect(doctor::CheckIndex(node), Status::kFailure,
         "rail0: pods get no address: nothing divides its subnet among the nodes");
  Fabric fabric = *node.fabric;
  const auto check = [&] {
    node.fabric = fabric;
    return doctor::CheckIndex(node);
  };
  NetworkRule rule;
  rule.ipam_types = {"static"};
  fabric.policy.rules = {rule};
  Expect(check(), Status::kNote, "nothing divides its subnet among the nodes");
  fabric.nodes = {{"node0", 9999}, {"node1", 1}};
  for (Rail& rail : fabric.rails) rail.node_block = 26;
  Expect(check(), Status::kFailure,
         "rail0: pods get no address: index 9999 is beyond the 1024 blocks of 10.0.0.0/16");
  fabric.nodes["node0"] = 1023;
  EXPECT_EQ(check().status(), Status::kOk);
  fabric.rails[1].node_block.reset();
  fabric.rails[1].node_ranges = {{"node1", {*IpRange::Parse("10.0.0.10-10.0.0.20")}}};
  Expect(check(), Status::kFailure,
         "rail1: pods get no address: nodeRanges has neither 'node0' nor its index 1023");
  node.pfs.pop_back();
  EXPECT_EQ(check().status(), Status::kOk) << "the node does not have that rail";
  node.pfs_unknown = "sysfs";
  Expect(check(), Status::kFailure, "rail1: pods get no address");
  fabric.rails[1].node_ranges["node0"] = {*IpRange::Parse("10.0.0.1")};
  fabric.rails[1].gateway = Gateway::Parse("10.0.0.1");
  Expect(check(), Status::kFailure, "no address left to hand out");
  fabric.rails.pop_back();
  fabric.nodes.clear();
  fabric.index_from_kubernetes = true;
  EXPECT_EQ(check().status(), Status::kOk) << "railheadd claims an index that has addresses";
}

TEST(FabricChecksTest, NotesRailsThatCannotNameInterfaces) {
  doctor::NodeFacts node = WithRail([](Rail* rail) { rail->name += "-with-a-long-name"; });
  Expect(doctor::CheckFabric(node), Status::kNote, "interfaces cannot be named after the rail");
}

TEST(IndexCheckTest, ProblemsOfTheClaim) {
  using Kind = NodeIndexProblem::Kind;
  doctor::NodeFacts node = WithRail([](Rail* rail) { rail->node_block = 26; });
  Fabric fabric = *node.fabric;
  fabric.index_from_kubernetes = true;
  node.fabric = fabric;
  EXPECT_EQ(doctor::CheckIndex(node).status(), Status::kSkipped) << "the file cannot be read";
  node.index_problems = std::vector<NodeIndexProblem>{};
  Expect(doctor::CheckIndex(node), Status::kOk, "has confirmed");
  const auto with = [&](Kind kind) {
    node.index_problems = std::vector<NodeIndexProblem>{{kind, {ErrorCode::kBusy, "why", "what to do", 0}}};
    return doctor::CheckIndex(node);
  };
  Expect(with(Kind::kNoIndex), Status::kFailure, "why");
  for (const Kind kind : {Kind::kUnconfirmed, Kind::kUnreadable, Kind::kReclaim})
    Expect(with(kind), Status::kWarning, "why");
  fabric.nodes["node0"] = 7;
  node.fabric = fabric;
  Expect(with(Kind::kNoIndex), Status::kWarning, "why");
}

TEST(CablingCheckTest, WrongUnknownAndUnchecked) {
  doctor::NodeFacts node = GoodNode();
  lldp::LldpReport report = GoodLldpReport();
  report.rails[1].cabling = lldp::Cabling::kWrong;
  report.rails[1].because = "swapped with rail0";
  node.lldp_report = report;
  Expect(doctor::CheckCabling(node), Status::kWarning,
         "rail1 is connected to leaf1, port swp1: swapped with rail0");
  report = GoodLldpReport();
  report.rails[1].cabling = lldp::Cabling::kUnknown;
  report.rails[1].neighbor.reset();
  report.rails[1].because = "no carrier";
  node.lldp_report = report;
  Expect(doctor::CheckCabling(node), Status::kNote, "rail1: its switch sends no LLDP frames, no carrier");
  report.rails[1].expected.clear();
  report.rails[0].cabling = lldp::Cabling::kUnchecked;
  node.lldp_report = report;
  Expect(doctor::CheckCabling(node), Status::kOk, "rail0: leaf0");
}

TEST(MtuTest, LessThanTheRails) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[0].mtu = 4200;
  Expect(doctor::CheckMtu(node), Status::kFailure,
         "pf0 (0000:03:00.0): MTU 4200, less than the 9000 of rail0");
}

TEST(MtuTest, TooSmallForRoce) {
  doctor::NodeFacts node = WithRail([](Rail* rail) { rail->mtu = std::nullopt; });
  EXPECT_EQ(doctor::CheckMtu(node).status(), Status::kOk);
  node.pfs[0].mtu = 1500;
  Expect(doctor::CheckMtu(node), Status::kNote, "MTU 1500, RoCE cannot use 4096 bytes");
  node = WithRail([](Rail* rail) { rail->mtu = 1500; });
  Expect(doctor::CheckMtu(node), Status::kNote, "rail0 gives pods 1500");
}

TEST(ArpTest, SeveralRails) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[0].arp = doctor::ArpSettings{1, 1, 2};
  Expect(doctor::CheckArp(node), Status::kWarning, "pf0 (0000:03:00.0): rp_filter is strict");
  for (const doctor::ArpSettings settings : {doctor::ArpSettings{0, 0, 2}, {2, 1, 1}}) {
    node.pfs[0].arp = settings;
    Expect(doctor::CheckArp(node), Status::kNote, "other rails' addresses");
  }
  node.pfs[0].arp = doctor::ArpSettings{1, 0, 0};
  node.pfs.pop_back();
  EXPECT_EQ(doctor::CheckArp(node).status(), Status::kOk) << "one rail has nobody to be confused with";
}

TEST(ProbesTest, TheForgersOfUnsignedOnesAreReported) {
  doctor::NodeFacts node = GoodNode();
  Fabric fabric = *node.fabric;
  const auto with = [&](const std::string& reachability, const doctor::Fact<bool>& is_signed) {
    fabric.reachability = reachability;
    node.fabric = fabric;
    node.probes_signed = is_signed;
    return doctor::CheckProbes(node);
  };
  const auto unknown = doctor::Fact<bool>::Unknown("railheadd has not probed since the boot");
  EXPECT_EQ(with("", unknown).status(), Status::kOk);
  EXPECT_EQ(with("false", unknown).status(), Status::kOk);
  Expect(with("{}", unknown), Status::kSkipped, "has not probed");
  EXPECT_EQ(with("{}", true).status(), Status::kOk);
  const auto verdict = with("{}", false);
  Expect(verdict, Status::kNote, "not signed");
  EXPECT_NE(verdict.Fix().find("probe-keys"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing

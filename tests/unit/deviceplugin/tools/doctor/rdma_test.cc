// Fabric, rails, RDMA mode, ports and GID tables.
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
  Expect(doctor::CheckFabric(node), Status::kFailure, "there is no /etc/railhead/fabric.json");
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

TEST(RdmaModeTest, AnotherOneThanStated) {
  doctor::NodeFacts node = GoodNode();
  node.rdma_exclusive = false;
  const auto now = doctor::CheckRdmaMode(node);
  Expect(now, Status::kFailure, "the mode is shared, fabric.json states exclusive");
  EXPECT_NE(now.Fix().find("rdma system set netns exclusive works now"), std::string::npos) << now.Fix();
  EXPECT_NE(now.Fix().find("netns_mode=0"), std::string::npos) << now.Fix();
  // The kernel refuses it while there is any other network namespace.
  node.other_namespaces = 3;
  const auto busy = doctor::CheckRdmaMode(node);
  EXPECT_NE(busy.Fix().find("not now: there are other network namespaces (3), the kernel answers EBUSY"),
            std::string::npos)
      << busy.Fix();
  EXPECT_NE(busy.Fix().find("reboot"), std::string::npos) << busy.Fix();
}

TEST(RdmaModeTest, TheOtherWayRound) {
  doctor::NodeFacts node = GoodNode();
  Fabric fabric = *node.fabric;
  fabric.rdma_exclusive = false;
  node.fabric = fabric;
  const auto verdict = doctor::CheckRdmaMode(node);
  Expect(verdict, Status::kFailure, "the mode is exclusive, fabric.json states shared");
  EXPECT_NE(verdict.Fix().find("netns_mode=1"), std::string::npos) << verdict.Fix();
  fabric.rdma_exclusive = std::nullopt;
  node.fabric = fabric;
  Expect(doctor::CheckRdmaMode(node), Status::kNote, "does not state");
}

// In shared mode a pod with CAP_NET_ADMIN reaches the RDMA devices of all others.
TEST(RdmaModeTest, SeveralTenantsShouldNotShare) {
  for (const bool exclusive : {false, true}) {
    for (const std::optional<bool> stated : {std::optional<bool>(), {false}, {true}}) {
      for (int tenants = 0; tenants < 4; ++tenants) {
        doctor::NodeFacts node = GoodNode();
        Fabric fabric = *node.fabric;
        fabric.rdma_exclusive = stated;
        node.fabric = fabric;
        node.rdma_exclusive = exclusive;
        doctor::RecordFacts records;
        for (int i = 0; i < tenants; ++i) records.tenants.insert("team-" + std::to_string(i));
        node.records = records;
        const auto verdict = doctor::CheckRdmaMode(node);
        bool warned = false;
        for (const auto& one : verdict.observations()) warned = warned || one.status == Status::kWarning;
        EXPECT_EQ(warned, !exclusive && tenants > 1) << exclusive << tenants;
      }
    }
  }
}

TEST(RdmaModeTest, TheWayOutIsToldWithTheTenants) {
  doctor::NodeFacts node = GoodNode();
  Fabric fabric = *node.fabric;
  fabric.rdma_exclusive = false;
  node.fabric = fabric;
  node.rdma_exclusive = false;
  doctor::RecordFacts records;
  records.tenants = {"blue", "red"};
  node.records = records;
  const auto verdict = doctor::CheckRdmaMode(node);
  Expect(verdict, Status::kWarning, "pods of 2 Kubernetes namespaces (blue, red) share all RDMA devices");
  EXPECT_NE(verdict.Fix().find("\"rdmaMode\": \"exclusive\""), std::string::npos) << verdict.Fix();
  EXPECT_NE(verdict.Fix().find("netns_mode=0"), std::string::npos) << verdict.Fix();
}

TEST(PortsTest, APortThatIsDown) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[1].port = PortState::kDown;
  Expect(doctor::CheckPorts(node), Status::kFailure, "mlx5_1 of pf1 (0000:13:00.0) is not ACTIVE");
}

TEST(GidsTest, OnlyRoceV1) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[1].gids = {{"mlx5_1", std::vector<GidEntry>{{0, {}, GidType::kRoceV1, "pf1"}}}};
  Expect(doctor::CheckGids(node), Status::kFailure, "mlx5_1 has no RoCE v2 GID");
  node.pfs[1].gids = {{"mlx5_1", std::vector<GidEntry>{}}};
  Expect(doctor::CheckGids(node), Status::kWarning, "mlx5_1 has no GIDs");
}

TEST(GidsTest, PortsThatBeginDifferently) {
  doctor::NodeFacts node = GoodNode();
  const auto good = doctor::CheckGids(node);
  ASSERT_EQ(good.observations().size(), 2U);
  EXPECT_NE(good.observations()[0].text.find("is at 3"), std::string::npos) << good.observations()[0].text;
  // irdma and others have RoCE v2 only.
  node.pfs[1].gids = {{"rocep1", std::vector<GidEntry>{{0, {}, GidType::kRoceV2, "pf1"}}}};
  const auto verdict = doctor::CheckGids(node);
  Expect(verdict, Status::kWarning, "is at 1 or later, unlike mlx5_0");
}

}  // namespace
}  // namespace railhead::testing

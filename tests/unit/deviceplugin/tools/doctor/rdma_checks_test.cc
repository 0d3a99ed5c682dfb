// RDMA mode, ports, GID tables; DSCP, PFC, ETS and ECN.
#include "tests/unit/deviceplugin/tools/doctor/support.h"

namespace railhead::testing {
namespace {

using doctor::Status;

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

TEST(RdmaModeTest, TheFixIsReportedWithTheTenants) {
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

TEST(NodeGuidTest, EachDeviceHasItsOwn) {
  doctor::NodeFacts node = GoodNode();
  node.node_guids = {{"mlx5_0", "0c42:a103:0000:0001"}, {"mlx5_1", "0c42:a103:0000:0002"}};
  Expect(doctor::CheckNodeGuids(node), Status::kOk, "its own");
  node.node_guids["mlx5_2"] = "0c42:a103:0000:0001";
  Expect(doctor::CheckNodeGuids(node), Status::kWarning, "0c42:a103:0000:0001: mlx5_0, mlx5_2");
  node.node_guids["mlx5_2"] = "0000:0000:0000:0000";
  Expect(doctor::CheckNodeGuids(node), Status::kWarning, "no node GUID: mlx5_2");
  EXPECT_NE(doctor::CheckNodeGuids(node).Fix().find("vf N mac"), std::string::npos);
  node.node_guids.clear();
  Expect(doctor::CheckNodeGuids(node), Status::kSkipped, "shows a node GUID");
}

// pf1 with other DCB.
doctor::NodeFacts With(const DcbState& dcb) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[1].dcb = dcb;
  return node;
}

TEST(DscpTest, TrustAndEntries) {
  DcbState dcb = GoodDcb();
  dcb.dscp.clear();
  const auto verdict = doctor::CheckDscp(With(dcb));
  Expect(verdict, Status::kWarning, "pf1 (0000:13:00.0) trusts VLAN tags");
  EXPECT_NE(verdict.Fix().find("dcb app add dev pf1 dscp-prio 26:"), std::string::npos) << verdict.Fix();
  dcb.dscp = {{0, 0}, {48, 6}};
  Expect(doctor::CheckDscp(With(dcb)), Status::kWarning, "no priority for traffic class 106 (DSCP 26)");
}

TEST(PfcTest, TheRailsPriority) {
  DcbState dcb = GoodDcb();
  dcb.pfc = std::uint8_t{0xf7};
  const auto verdict = doctor::CheckPfc(With(dcb));
  Expect(verdict, Status::kWarning, "pf1 (0000:13:00.0): PFC is off for priority 3 of rail1");
  EXPECT_NE(verdict.Fix().find("dcb pfc set dev pf1 prio-pfc 3:on"), std::string::npos) << verdict.Fix();
  // The entry with the highest priority counts.
  dcb.pfc = std::uint8_t{0x20};
  dcb.dscp = {{26, 3}, {26, 5}, {26, 4}};
  EXPECT_EQ(doctor::CheckPfc(With(dcb)).status(), Status::kOk);
  dcb.pfc = std::nullopt;
  const auto unknown = doctor::CheckPfc(With(dcb));
  EXPECT_EQ(unknown.observations()[1].status, Status::kSkipped);
}

TEST(PfcTest, ByVlanPriority) {
  doctor::NodeFacts node = WithRail([](Rail* rail) {
    rail->traffic_class = std::nullopt;
    rail->vlan = 100;
    rail->vlan_qos = 5;
  });
  Expect(doctor::CheckPfc(node), Status::kWarning, "PFC is off for priority 5");
  EXPECT_EQ(doctor::CheckDscp(node).status(), Status::kOk);
  for (doctor::PfFacts& pf : node.pfs) {
    DcbState dcb;
    dcb.pfc = std::uint8_t{0x20};
    pf.dcb = dcb;
  }
  EXPECT_EQ(doctor::CheckPfc(node).status(), Status::kOk);
}

TEST(PfcTest, WithoutProfile) {
  const doctor::NodeFacts node = WithRail([](Rail* rail) { rail->traffic_class = std::nullopt; });
  Expect(doctor::CheckPfc(node), Status::kNote, "rail0 has neither trafficClass nor vlanQoS");
}

TEST(EtsTest, AClassWithoutBandwidth) {
  DcbState dcb = GoodDcb();
  dcb.ets->bandwidth = {100, 0, 0, 0, 0, 0, 0, 0};
  Expect(doctor::CheckEts(With(dcb)), Status::kWarning, "priority 3 is traffic class 3 with no bandwidth");
  dcb.ets->selection[3] = kTsaStrict;
  EXPECT_EQ(doctor::CheckEts(With(dcb)).status(), Status::kOk);
  dcb.ets->traffic_classes[3] = 9;
  EXPECT_EQ(doctor::CheckEts(With(dcb)).observations()[1].status, Status::kSkipped);
}

TEST(EcnTest, BothSides) {
  for (const bool reacts : {true, false}) {
    doctor::NodeFacts node = GoodNode();
    doctor::EcnState ecn{std::vector<bool>(8, reacts), std::vector<bool>(8, !reacts)};
    node.pfs[1].ecn = ecn;
    Expect(doctor::CheckEcn(node), Status::kWarning,
           "pf1 (0000:13:00.0): ECN is not on for priority 3 of rail1");
  }
}

}  // namespace
}  // namespace railhead::testing

// MTU, ARP, DSCP, PFC, ETS, ECN; and DCB's messages as bytes.
#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

#include <random>

#include "netns/nl/dcb.h"
#include "tests/unit/deviceplugin/tools/doctor/support.h"

namespace railhead::testing {
namespace {

using doctor::Status;
using Bytes = std::vector<std::uint8_t>;

// pf1 with other DCB.
doctor::NodeFacts With(const DcbState& dcb) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[1].dcb = dcb;
  return node;
}

doctor::NodeFacts WithRail(void (*change)(Rail*)) {
  doctor::NodeFacts node = GoodNode();
  Fabric fabric = *node.fabric;
  for (Rail& rail : fabric.rails) change(&rail);
  node.fabric = fabric;
  return node;
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
  const auto untold = doctor::CheckPfc(With(dcb));
  EXPECT_EQ(untold.observations()[1].status, Status::kSkipped);
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

// --- messages ---

Bytes Copy(nl::Message& message) {
  const auto bytes = message.Bytes().value();
  return {bytes.begin(), bytes.end()};
}

TEST(DcbMessagesTest, Request) {
  nl::Message message = nl::GetDcbMessage("pf0");
  Bytes bytes = Copy(message);
  std::fill(bytes.begin() + 8, bytes.begin() + 16, std::uint8_t{0});
  const Bytes wanted = {// nlmsghdr: length 28, RTM_GETDCB, NLM_F_REQUEST
                        28, 0, 0, 0, 78, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                        // dcbmsg: AF_UNSPEC, DCB_CMD_IEEE_GET
                        0, 21, 0, 0,
                        // DCB_ATTR_IFNAME
                        8, 0, 1, 0, 'p', 'f', '0', 0};
  EXPECT_EQ(bytes, wanted);
}

// As mlx5 answers: ETS, PFC and the application table.
Bytes Answer(std::uint8_t command = DCB_CMD_IEEE_GET) {
  nl::Message message(RTM_GETDCB, 0);
  dcbmsg header{};
  header.cmd = command;
  message.Header(header);
  message.PutString(DCB_ATTR_IFNAME, "pf0");
  {
    const nl::Message::Nest ieee(message, DCB_ATTR_IEEE);
    ieee_ets ets{};
    ets.ets_cap = 8;
    ets.tc_tx_bw[3] = 60;
    ets.tc_tsa[3] = IEEE_8021QAZ_TSA_ETS;
    ets.prio_tc[5] = 3;
    ets.tc_rx_bw[3] = 11;  // not what is asked for
    message.PutStruct(DCB_ATTR_IEEE_ETS, ets);
    ieee_pfc pfc{};
    pfc.pfc_cap = 8;
    pfc.pfc_en = 0x28;
    message.PutStruct(DCB_ATTR_IEEE_PFC, pfc);
    {
      const nl::Message::Nest table(message, DCB_ATTR_IEEE_APP_TABLE);
      message.PutStruct(DCB_ATTR_IEEE_APP, dcb_app{IEEE_8021QAZ_APP_SEL_ETHERTYPE, 3, 0x8915});
      message.PutStruct(DCB_ATTR_IEEE_APP, dcb_app{IEEE_8021QAZ_APP_SEL_DSCP, 5, 26});
      message.PutStruct(DCB_ATTR_IEEE_APP, dcb_app{IEEE_8021QAZ_APP_SEL_DSCP, 5, 64});
      message.PutStruct(DCB_ATTR_IEEE_APP, dcb_app{IEEE_8021QAZ_APP_SEL_DSCP, 8, 27});
    }
  }
  return Copy(message);
}

std::optional<DcbState> Parse(const Bytes& bytes) {
  std::optional<DcbState> state;
  nl::ForEachMessage(bytes, [&](const nl::Received& received) { state = nl::ParseDcb(received); });
  return state;
}

TEST(DcbMessagesTest, Answers) {
  const auto state = Parse(Answer());
  ASSERT_TRUE(state);
  EXPECT_EQ(state->pfc, 0x28);
  ASSERT_TRUE(state->ets);
  EXPECT_EQ(state->ets->bandwidth[3], 60);
  EXPECT_EQ(state->ets->selection[3], kTsaEts);
  EXPECT_EQ(state->ets->selection[0], kTsaStrict);
  EXPECT_EQ(state->ets->traffic_classes[5], 3);
  EXPECT_EQ(state->dscp, (std::vector<DscpEntry>{{26, 5}}));
  EXPECT_EQ(Parse(Answer(DCB_CMD_CEE_GET)), std::nullopt);
}

// As struct ieee_pfc stands in the kernel's answer: pfc_cap, pfc_en.
TEST(DcbMessagesTest, AnswersByHand) {
  const Bytes bytes = {36, 0, 0, 0, 78, 0,    0, 0, 0,  0, 0,  0,
                       0,  0, 0, 0, 0,  21,   0, 0, 16, 0, 13, 128,  // DCB_ATTR_IEEE, nested
                       10, 0, 2, 0, 8,  0x08, 0, 0, 0,  0,           // DCB_ATTR_IEEE_PFC, cut short
                       0,  0};
  const auto cut = Parse(bytes);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->pfc, std::nullopt);
  EXPECT_TRUE(cut->dscp.empty());
}

TEST(DcbMessagesTest, AnyBytes) {
  std::mt19937 random(7);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same bytes each time
  const Bytes answer = Answer();
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes = answer;
    for (int i = 0; i < 4; ++i)
      bytes[16 + random() % (bytes.size() - 16)] = static_cast<std::uint8_t>(random());
    bytes.resize(16 + random() % (bytes.size() - 15));
    const auto state = nl::ParseDcb({RTM_GETDCB, 0, 0, nl::BytesView(bytes).subspan(16)});
    if (!state) continue;
    for (const DscpEntry& entry : state->dscp) EXPECT_TRUE(entry.dscp < 64 && entry.priority < 8);
  }
}

// What the running kernel says of a device without DCB, and of none.
TEST(DcbTest, TheRunningKernel) {
  const auto loopback = ReadDcb("lo");
  ASSERT_TRUE(loopback) << Describe(loopback.error());
  EXPECT_EQ(*loopback, std::nullopt);
  const auto nothing = ReadDcb("nothere0");
  EXPECT_TRUE(!nothing || !*nothing) << "a kernel without DCB does not look";
}

TEST(ProbesTest, WhoeverCanForgeThemIsTold) {
  doctor::NodeFacts node = GoodNode();
  Fabric fabric = *node.fabric;
  const auto with = [&](const std::string& connectivity, const std::string& health,
                        const doctor::Fact<bool>& is_signed) {
    fabric.connectivity = connectivity;
    fabric.health = health;
    node.fabric = fabric;
    node.probes_signed = is_signed;
    return doctor::CheckProbes(node);
  };
  const auto unknown = doctor::Fact<bool>::Unknown("railheadd has not probed since the boot");
  EXPECT_EQ(with("", "", unknown).status(), Status::kOk);
  EXPECT_EQ(with("false", "", unknown).status(), Status::kOk);
  Expect(with("{}", "", unknown), Status::kSkipped, "has not probed");
  EXPECT_EQ(with("{}", R"({"unreachable":true})", true).status(), Status::kOk);
  Expect(with("{}", "", false), Status::kNote, "not signed");
  Expect(with("{}", R"({"unreachable":false,"impaired":false})", false), Status::kNote, "not signed");
  for (const char* health : {R"({"unreachable":true})", R"({"impaired":{}})"}) {
    const auto verdict = with("{}", health, false);
    Expect(verdict, Status::kWarning, "a pod that forges them");
    EXPECT_NE(verdict.Fix().find("probe-keys"), std::string::npos);
  }
}

}  // namespace
}  // namespace railhead::testing

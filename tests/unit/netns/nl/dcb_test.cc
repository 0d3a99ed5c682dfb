// DCB's messages as bytes.
#include "netns/nl/dcb.h"

#include <gtest/gtest.h>
#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "netns/nl/dcb_messages.h"
#include "netns/nl/socket.h"

namespace railhead::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;

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

// The running kernel's answer about a device without DCB, and about an absent device.
TEST(DcbTest, TheRunningKernel) {
  const auto loopback = ReadDcb("lo");
  ASSERT_TRUE(loopback) << Describe(loopback.error());
  EXPECT_EQ(*loopback, std::nullopt);
  const auto nothing = ReadDcb("nothere0");
  EXPECT_TRUE(!nothing || !*nothing) << "a kernel without DCB does not look";
}

}  // namespace
}  // namespace railhead::testing

// Settings as netlink messages: a parser reads the value that a message was written with, whatever the value.
// For a message that sets a field uses the attribute of the kernel's answer.
#include "netns/nl/device_messages.h"

#include <gtest/gtest.h>
#include <linux/dcbnl.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/rtnetlink.h>

#include <cerrno>
#include <cstring>

#include "netns/base/text.h"
#include "netns/nl/device_attributes.h"
#include "netns/nl/ethtool_messages.h"
#include "tests/support/fake_kernel/random_settings.h"

namespace railhead::testing {
namespace {

constexpr int kRounds = 200;
constexpr int kIndex = 7;
constexpr std::uint16_t kFamily = 21;

using Bytes = std::vector<std::uint8_t>;

// The request as if it were an answer of type `type`.
class Answer {
 public:
  Answer(nl::Message message, std::uint16_t type) : type_(type) {
    const auto bytes = message.Bytes();
    EXPECT_TRUE(bytes);
    if (bytes) payload_.assign(bytes->begin() + sizeof(nlmsghdr), bytes->end());
  }
  [[nodiscard]] nl::Received received() const { return {type_, 0, 1, payload_}; }
  Bytes& payload() { return payload_; }

 private:
  std::uint16_t type_;
  Bytes payload_;
};

// Random values for the fields of one source.
DeviceState RandomState(DeviceSource source, std::mt19937& random) {
  DeviceState state;
  for (const DeviceField& field : DeviceFields()) {
    if (field.source == source) state.values.emplace(field.name, RandomValue(field, random));
  }
  return state;
}

TEST(DeviceMessages, EthtoolRoundTrip) {
  std::mt19937 random = SeededGenerator();
  std::size_t sources = 0;
  for (const DeviceSource source : nl::EthtoolSources()) {
    ++sources;
    for (int round = 0; round < kRounds; ++round) {
      const DeviceState state = RandomState(source, random);
      ASSERT_FALSE(state.values.empty());
      const Answer answer(nl::SetEthtoolMessage(kFamily, source, kIndex, state), kFamily);
      DeviceState read;
      nl::ParseEthtool(answer.received(), source, read);
      ASSERT_EQ(read, state);
    }
  }
  EXPECT_EQ(sources, 10U);
}

// A kernel that knows fewer bits than the size that it is sent can refuse even zeros.
TEST(DeviceMessages, BitsEndWithTheHighestOne) {
  const DeviceField field{"bits", DeviceSource::kFeatures, ETHTOOL_A_FEATURES_WANTED, DeviceForm::kBits};
  const struct {
    std::string value;
    std::string mask;
    std::uint32_t size;
  } cases[] = {{"00007fff", "", 15},         {"00000000", "", 1},
               {"00000000", "00000100", 9},  {"0000000080000000", "", 32},
               {"0000000100000000", "", 33}, {"0000000000000001", "0010000000000000", 53}};
  for (const auto& [value, mask, size] : cases) {
    nl::Message message(kFamily, 0);
    nl::PutField(message, field, value, mask);
    const auto bytes = message.Bytes();
    ASSERT_TRUE(bytes);
    std::map<int, nl::BytesView> sent;
    nl::ForEachAttribute(nl::BytesView(*bytes).subspan(sizeof(nlmsghdr)), [&](int, nl::BytesView nest) {
      nl::ForEachAttribute(nest, [&](int type, nl::BytesView payload) { sent[type] = payload; });
    });
    EXPECT_EQ(nl::ReadStruct<std::uint32_t>(sent[ETHTOOL_A_BITSET_SIZE]), size) << value;
    const std::size_t length = (size + 31) / 32 * sizeof(std::uint32_t);
    EXPECT_EQ(sent[ETHTOOL_A_BITSET_VALUE].size(), length) << "ethnl_compact_sanity_checks";
    EXPECT_EQ(sent[ETHTOOL_A_BITSET_MASK].size(), mask.empty() ? 0 : length);
  }
}

// Each source has commands of its own, so no message reads or writes another source's settings.
TEST(DeviceMessages, EthtoolCommandsAreDistinct) {
  std::set<std::uint8_t> commands;
  for (const DeviceSource source : nl::EthtoolSources()) {
    for (const bool set : {false, true}) {
      nl::Message message = set ? nl::SetEthtoolMessage(kFamily, source, kIndex, {})
                                : nl::GetEthtoolMessage(kFamily, source, kIndex);
      const auto bytes = message.Bytes();
      ASSERT_TRUE(bytes);
      EXPECT_TRUE(commands.insert((*bytes)[sizeof(nlmsghdr)]).second);
    }
  }
  EXPECT_EQ(commands.size(), 20U);
}

TEST(DeviceMessages, LinkRoundTrip) {
  std::mt19937 random = SeededGenerator();
  for (int round = 0; round < kRounds; ++round) {
    DeviceState state = RandomState(DeviceSource::kLink, random);
    // Only the flags that can be changed.
    state.values["link.flags"] = std::to_string(nl::NumberOf(state.values["link.flags"]) & 0xf0a4U);
    const Answer answer(nl::SetLinkMessage(kIndex, state), RTM_NEWLINK);
    DeviceState read;
    nl::ParseDevice(answer.received(), read);
    ASSERT_EQ(read, state);
  }
}

// Without flags among the fields, the message changes no flag.
TEST(DeviceMessages, LinkFlagsOnlyIfMeant) {
  DeviceState state;
  state.values["link.group"] = "3";
  Answer answer(nl::SetLinkMessage(kIndex, state), RTM_NEWLINK);
  ifinfomsg header{};
  std::memcpy(&header, answer.payload().data(), sizeof(header));
  EXPECT_EQ(header.ifi_change, 0U);
  state.values["link.flags"] = "4096";
  answer = Answer(nl::SetLinkMessage(kIndex, state), RTM_NEWLINK);
  std::memcpy(&header, answer.payload().data(), sizeof(header));
  EXPECT_EQ(header.ifi_flags, 4096U);
  EXPECT_EQ(header.ifi_change & 1U, 0U) << "never IFF_UP";
}

TEST(DeviceMessages, QdiscRoundTrip) {
  std::mt19937 random = SeededGenerator();
  const DeviceField& root = *FindDeviceField("qdisc.root");
  int tried = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string value = RandomValue(root, random);
    if (value.empty()) continue;
    auto message = nl::AddQdiscMessage(kIndex, root, value);
    ASSERT_TRUE(message);
    EXPECT_EQ(nl::ParseQdisc(Answer(std::move(*message), RTM_NEWQDISC).received()), value);
    ++tried;
  }
  EXPECT_GT(tried, kRounds / 4);
  EXPECT_EQ(nl::ParseQdisc(Answer(nl::DeleteQdiscMessage(kIndex, root), RTM_NEWQDISC).received()),
            std::nullopt)
      << "without a handle: the kernel's own";
  for (const char* bad : {"", "fq", "fq/1", "fq/xx/", "fq/00000180/0", "fq/0001/00"})
    EXPECT_FALSE(nl::AddQdiscMessage(kIndex, root, bad)) << bad;
}

Answer DcbAnswer(nl::Message message) {
  Answer answer(std::move(message), RTM_GETDCB);
  answer.payload()[offsetof(dcbmsg, cmd)] = DCB_CMD_IEEE_GET;
  return answer;
}

TEST(DeviceMessages, DcbRoundTrip) {
  std::mt19937 random = SeededGenerator();
  for (int round = 0; round < kRounds; ++round) {
    DeviceState state = RandomState(DeviceSource::kDcb, random);
    std::string pfc = state.values["dcb.pfc"] + "000000000000";
    state.values["dcb.pfc"] = pfc.substr(0, 12);  // without the counters
    const std::string list = state.values["dcb.applications"];
    state.values.erase("dcb.applications");
    DeviceState read;
    nl::ParseDcbSettings(DcbAnswer(nl::SetDcbMessage("eth0", state)).received(), read);
    ASSERT_EQ(read, state);
    for (const std::string& element : nl::ElementsOf(list)) {
      auto message = nl::ChangeDcbApplicationMessage("eth0", element, true);
      ASSERT_TRUE(message);
      DeviceState one;
      nl::ParseDcbSettings(DcbAnswer(std::move(*message)).received(), one);
      EXPECT_EQ(*one.Find("dcb.applications"), element);
    }
  }
  for (const char* bad : {"", "5", "5/26", "5/26/x", "5/26/3/1", "-5/26/3"})
    EXPECT_FALSE(nl::ChangeDcbApplicationMessage("eth0", bad, true)) << bad;
}

// The answer contains a driver's refusal, as the errno in one byte.
TEST(DeviceMessages, WhatTheDriverRefusesOfDcb) {
  for (const int refusal : {0, EINVAL, EOPNOTSUPP, ENODEV}) {
    nl::Message message(RTM_SETDCB, 0);
    message.Header(dcbmsg{});
    message.PutU8(DCB_ATTR_IEEE, static_cast<std::uint8_t>(-refusal));
    const auto error = nl::ParseDcbAnswer(Answer(std::move(message), RTM_SETDCB).received());
    EXPECT_EQ(error ? error->sys_errno : 0, refusal);
  }
}

// Counters are not settings: two answers of one port are equal.
TEST(DeviceMessages, PfcWithoutItsCounters) {
  ieee_pfc pfc{};
  pfc.pfc_en = 8;
  DeviceState states[2];
  for (DeviceState& state : states) {
    nl::Message message(RTM_GETDCB, 0);
    dcbmsg header{};
    header.cmd = DCB_CMD_IEEE_GET;
    message.Header(header);
    {
      const nl::Message::Nest ieee(message, DCB_ATTR_IEEE);
      message.PutStruct(DCB_ATTR_IEEE_PFC, pfc);
    }
    nl::ParseDcbSettings(Answer(std::move(message), RTM_GETDCB).received(), state);
    pfc.requests[3] += 17;
  }
  EXPECT_EQ(states[0], states[1]);
  EXPECT_EQ(states[0].values.at("dcb.pfc").substr(2, 2), "08");
}

}  // namespace
}  // namespace railhead::testing

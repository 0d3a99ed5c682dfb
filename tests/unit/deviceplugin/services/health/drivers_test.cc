// What drivers report about their devices.
#include <gtest/gtest.h>
#include <linux/devlink.h>
#include <linux/genetlink.h>
#include <net/if.h>

#include "deviceplugin/services/health/driver_source.h"
#include "netns/nl/devlink_health.h"
#include "netns/nl/devlink_messages.h"
#include "netns/nl/devlink_versions.h"
#include "netns/sys/ethtool_stats.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;

// devlink's messages as bytes, and what the running kernel answers.

Bytes Copy(nl::Message& message) {
  const auto bytes = message.Bytes().value();
  return {bytes.begin(), bytes.end()};
}

template <typename T>
std::optional<T> Parsed(const Bytes& bytes, std::optional<T> (*parse)(const nl::Received&)) {
  std::optional<T> parsed;
  nl::ForEachMessage(bytes, [&](const nl::Received& received) { parsed = parse(received); });
  return parsed;
}

struct DevlinkReport {
  std::uint8_t command = DEVLINK_CMD_HEALTH_REPORTER_RECOVER;
  std::string bus = "pci";
  std::string address = "0000:43:00.0";
  std::string reporter = "fw_fatal";
  std::uint8_t state = 1;
  bool port = false;
};

Bytes Build(const DevlinkReport& report) {
  nl::Message message(30, 0);
  message.Header(genlmsghdr{report.command, DEVLINK_GENL_VERSION, 0});
  message.PutString(DEVLINK_ATTR_BUS_NAME, report.bus);
  message.PutString(DEVLINK_ATTR_DEV_NAME, report.address);
  if (report.port) message.PutU32(DEVLINK_ATTR_PORT_INDEX, 65535);
  {
    const nl::Message::Nest nest(message, DEVLINK_ATTR_HEALTH_REPORTER);
    message.PutString(DEVLINK_ATTR_HEALTH_REPORTER_NAME, report.reporter);
    message.PutU8(DEVLINK_ATTR_HEALTH_REPORTER_STATE, report.state);
  }
  return Copy(message);
}

TEST(DevlinkMessagesTest, Requests) {
  nl::Message family = nl::GetDevlinkFamilyMessage();
  const Bytes asked = Copy(family);
  const std::string text(asked.begin(), asked.end());
  EXPECT_NE(text.find(std::string("devlink\0", 8)), std::string::npos);
  nl::Message reporter = nl::GetHealthReporterMessage(30, "0000:43:00.0", "fw");
  Bytes bytes = Copy(reporter);
  std::fill(bytes.begin() + 8, bytes.begin() + 16, std::uint8_t{0});
  const Bytes wanted = {// nlmsghdr: length 56, family 30, NLM_F_REQUEST
                        56, 0, 0, 0, 30, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                        // genlmsghdr: DEVLINK_CMD_HEALTH_REPORTER_GET, version 1
                        DEVLINK_CMD_HEALTH_REPORTER_GET, 1, 0, 0,
                        // DEVLINK_ATTR_BUS_NAME "pci", DEVLINK_ATTR_DEV_NAME, reporter's name "fw"
                        8, 0, 1, 0, 'p', 'c', 'i', 0,  //
                        17, 0, 2, 0, '0', '0', '0', '0', ':', '4', '3', ':', '0', '0', '.', '0', 0, 0, 0, 0,
                        7, 0, DEVLINK_ATTR_HEALTH_REPORTER_NAME, 0, 'f', 'w', 0, 0};
  EXPECT_EQ(bytes, wanted);
}

TEST(DevlinkMessagesTest, Family) {
  nl::Message message(GENL_ID_CTRL, 0);
  message.Header(genlmsghdr{CTRL_CMD_NEWFAMILY, 2, 0});
  message.PutStruct(CTRL_ATTR_FAMILY_ID, std::uint16_t{33});
  {
    const nl::Message::Nest groups(message, CTRL_ATTR_MCAST_GROUPS);
    for (const auto& [index, name] : {std::pair(1, "other"), {2, "config"}}) {
      const nl::Message::Nest group(message, index);
      message.PutU32(CTRL_ATTR_MCAST_GRP_ID, static_cast<std::uint32_t>(40 + index));
      message.PutString(CTRL_ATTR_MCAST_GRP_NAME, name);
    }
  }
  const auto family = Parsed(Copy(message), nl::ParseDevlinkFamily);
  ASSERT_TRUE(family);
  EXPECT_EQ(family->id, 33);
  EXPECT_EQ(family->events, 42U);
}

TEST(DevlinkMessagesTest, ReportersAndInstances) {
  for (const std::uint8_t command : {DEVLINK_CMD_HEALTH_REPORTER_GET, DEVLINK_CMD_HEALTH_REPORTER_RECOVER}) {
    DevlinkReport report;
    report.command = command;
    auto news = Parsed(Build(report), nl::ParseDevlinkNews);
    ASSERT_TRUE(news);
    EXPECT_EQ(news->address, "0000:43:00.0");
    EXPECT_EQ(news->reporter, "fw_fatal");
    EXPECT_TRUE(news->failed);
    EXPECT_FALSE(news->instance);
    report.state = 0;
    EXPECT_FALSE(Parsed(Build(report), nl::ParseDevlinkNews)->failed);
  }
  for (const std::uint8_t command : {DEVLINK_CMD_NEW, DEVLINK_CMD_DEL}) {
    DevlinkReport report;
    report.command = command;
    EXPECT_TRUE(Parsed(Build(report), nl::ParseDevlinkNews)->instance);
  }
}

TEST(DevlinkMessagesTest, OtherNews) {
  EXPECT_FALSE(Parsed(Build({.bus = "auxiliary"}), nl::ParseDevlinkNews));
  EXPECT_FALSE(Parsed(Build({.command = DEVLINK_CMD_PORT_NEW}), nl::ParseDevlinkNews));
  EXPECT_FALSE(Parsed(Build({.port = true}), nl::ParseDevlinkNews)) << "a port's reporter of the same name";
  EXPECT_FALSE(Parsed(Build({.reporter = ""}), nl::ParseDevlinkNews));
}

Bytes BuildInfo() {
  nl::Message message(30, 0);
  message.Header(genlmsghdr{DEVLINK_CMD_INFO_GET, DEVLINK_GENL_VERSION, 0});
  message.PutString(DEVLINK_ATTR_DEV_NAME, "0000:43:00.0");
  const auto put = [&](int kind, const char* name, const char* value) {
    const nl::Message::Nest version(message, kind);
    message.PutString(DEVLINK_ATTR_INFO_VERSION_NAME, name);
    message.PutString(DEVLINK_ATTR_INFO_VERSION_VALUE, value);
  };
  put(DEVLINK_ATTR_INFO_VERSION_FIXED, "board.id", "K65390-000");
  put(DEVLINK_ATTR_INFO_VERSION_RUNNING, "fw.app.name", "ICE COMMS Package");
  put(DEVLINK_ATTR_INFO_VERSION_RUNNING, "fw.app", "1.3.4.0");
  put(DEVLINK_ATTR_INFO_VERSION_STORED, "fw.app.name", "another");
  return Copy(message);
}

TEST(DevlinkMessagesTest, WhatRuns) {
  std::map<std::string, std::string> versions;
  nl::ForEachMessage(BuildInfo(),
                     [&](const nl::Received& received) { versions = nl::ParseRunningVersions(received); });
  EXPECT_EQ(versions, (std::map<std::string, std::string>{{"fw.app", "1.3.4.0"},
                                                          {"fw.app.name", "ICE COMMS Package"}}));
}

TEST(DevlinkInfoTest, AFunctionThatNoKernelHasSaysNothing) {
  const auto versions = DevlinkRunningVersions("ffff:ff:1f.7");
  if (!versions && versions.error().code == ErrorCode::kUnsupported) GTEST_SKIP() << versions.error().message;
  ASSERT_TRUE(versions) << Describe(versions.error());
  EXPECT_TRUE(versions->empty());
}

// A function that no kernel has: no reporter, no error.
TEST(DevlinkHealthTest, TheRunningKernel) {
  auto devlink = DevlinkHealth::Open();
  if (!devlink && devlink.error().code == ErrorCode::kUnsupported) GTEST_SKIP() << devlink.error().message;
  ASSERT_TRUE(devlink) << Describe(devlink.error());
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(devlink->Refresh());
    const auto failed = devlink->HasFailed("ffff:ff:1f.7", "fw_fatal");
    ASSERT_TRUE(failed) << Describe(failed.error());
    EXPECT_FALSE(*failed);
  }
}

TEST(KernelDriverSourceTest, SaysNothingOfWhatIsNotThere) {
  const auto source = health::MakeKernelDriverSource();
  for (int round = 0; round < 2; ++round) {
    const auto failed = source->FailedReporters("ffff:ff:1f.7", {"fw_fatal"});
    ASSERT_TRUE(failed) << Describe(failed.error());
    EXPECT_TRUE(failed->empty());
    const auto statistics = source->Statistics("nothere", {"tx_pause_storm_error_events"});
    ASSERT_TRUE(statistics) << Describe(statistics.error());
    EXPECT_TRUE(statistics->empty());
  }
}

// On the running kernel: veth has statistics, macvlan has none.

class EthtoolStatsTest : public ::testing::Test {
 protected:
  // The test program has a namespace of its own. A socket that it opens sees that namespace.
  NetNs here_ = Must(NetNs::Current());
  NetNs other_ = MakeNetns();
  EthtoolStats stats_ = Must(EthtoolStats::Open());
};

TEST_F(EthtoolStatsTest, ByName) {
  const int index = AddVeth(here_, "stats0", here_, "stats1");
  const int peer = static_cast<int>(::if_nametoindex("stats1"));
  const auto values = Must(stats_.Read("stats0", {"peer_ifindex", "no_such_thing"}));
  ASSERT_EQ(values.size(), 1U);
  EXPECT_EQ(values.at("peer_ifindex"), static_cast<std::uint64_t>(peer));
  // The place is known now; the answer is the same.
  EXPECT_EQ(Must(stats_.Read("stats0", {"peer_ifindex", "no_such_thing"})), values);
  EXPECT_TRUE(Must(stats_.Read("stats0", {"no_such_thing"})).empty());
  EXPECT_EQ(Must(stats_.Read("stats1", {"peer_ifindex"})).at("peer_ifindex"),
            static_cast<std::uint64_t>(index));
  DeleteLink(here_, index);
  EXPECT_TRUE(Must(stats_.Read("stats0", {"peer_ifindex"})).empty()) << "gone";
}

TEST_F(EthtoolStatsTest, WithoutStatistics) {
  EXPECT_TRUE(Must(stats_.Read("lo", {"peer_ifindex"})).empty());
  EXPECT_TRUE(Must(stats_.Read("nothere", {"peer_ifindex"})).empty());
  EXPECT_TRUE(Must(stats_.Read("", {"peer_ifindex"})).empty());
  EXPECT_TRUE(Must(stats_.Read(std::string(40, 'x'), {"peer_ifindex"})).empty());
}

// The socket stays in the namespace where it was opened. It does not see devices of another one.
TEST_F(EthtoolStatsTest, OtherNamespaces) {
  AddVeth(other_, "away0", other_, "away1");
  EXPECT_TRUE(Must(stats_.Read("away0", {"peer_ifindex"})).empty());
}

}  // namespace
}  // namespace railhead::testing

// The format of a recording: which lines it accepts and which it refuses.
#include "deviceplugin/services/health/recording.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "deviceplugin/services/health/recorded_device.h"
#include "deviceplugin/services/health/rules.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;

const std::string kBegin = R"({"version":1,"node":"n","time":"2027-01-15T08:00:00.250Z"})"
                           "\n";

health::Recording Parsed(const std::string& lines) {
  auto recording = health::ParseRecording(kBegin + lines, "it");
  EXPECT_TRUE(recording) << recording.error().message;
  return recording ? *std::move(recording) : health::Recording{};
}

std::string Refused(const std::string& text) {
  const auto recording = health::ParseRecording(text, "it");
  EXPECT_FALSE(recording);
  return recording ? "" : recording.error().message;
}

TEST(RecordingTest, LinesTellWhatIsNew) {
  const health::Recording recording = Parsed(
      R"({"t":0,"device":"0000:43:00.0","pfName":"pf0","vfs":2,"link":{"netdev":"pf0","up":true,"carrier":true}})"
      "\n"
      R"({"t":0,"device":"0000:43:02.0","pf":"0000:43:00.0","inUse":true})"
      "\n\n"
      R"({"t":5000,"device":"0000:43:00.0","link":{"carrier":false},"counters":{"aer":{"aer_dev_fatal":1}}})"
      "\n"
      R"({"t":6000,"device":"0000:43:00.0","link":false,"reporters":["fw"]})"
      "\n");
  ASSERT_EQ(recording.segments.size(), 1U);
  const auto& rounds = recording.segments[0].rounds;
  ASSERT_EQ(rounds.size(), 3U);
  ASSERT_EQ(rounds[0].devices.size(), 2U);
  EXPECT_TRUE(rounds[0].devices[1].subject.is_vf);
  EXPECT_TRUE(rounds[0].devices[1].subject.in_use);
  const health::RecordedDevice& cut = rounds[1].devices.at(0);
  EXPECT_EQ(cut.subject.vf_count, 2);
  EXPECT_TRUE(cut.seen.link->admin_up);
  EXPECT_FALSE(cut.seen.link->carrier);
  EXPECT_EQ(cut.seen.counters.at(0).value, 1U);
  const health::RecordedDevice& away = rounds[2].devices.at(0);
  EXPECT_FALSE(away.seen.link);
  EXPECT_TRUE(away.seen.counters.empty()) << "nothing new";
  EXPECT_EQ(away.seen.failed_reporters, std::vector<std::string>{"fw"});
  EXPECT_EQ(health::FormatMillis(recording.segments[0].header.time), "2027-01-15T08:00:00.250Z");
}

// Of versions whose health rules judged by probes.
TEST(RecordingTest, LetsGoOfWhatProbesSaid) {
  const health::Recording recording =
      Parsed(R"({"t":0,"health":{"unreachable":true,"impaired":{"enabled":false},"link":{"downAfter":25}}})"
             "\n"
             R"({"t":0,"device":"0000:43:00.0","rail":{"state":"dead","because":"silent: node1"}})"
             "\n"
             R"({"t":5,"device":"0000:43:00.0","rail":false})"
             "\n");
  const auto& rounds = recording.segments[0].rounds;
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[0].rules.at(0).Of(health::HealthRule::kLink).down_after, std::chrono::seconds(25));
}

TEST(RecordingTest, TellsWhatAnOperatorTookOut) {
  health::RecordedDevice before = health::NewRecordedDevice("0000:43:00.0");
  health::RecordedDevice drained = before;
  drained.seen.drained = health::Drain{"0000:43:00.0", "rail0", "cable",
                                       std::chrono::system_clock::time_point(std::chrono::seconds(7))};
  const std::string line = DeviceDelta(before, drained).dump();
  EXPECT_EQ(line, R"({"drained":{"name":"rail0","reason":"cable","since":"1970-01-01T00:00:07Z"}})");
  EXPECT_EQ(DeviceDelta(drained, before).dump(), R"({"drained":false})");
  const health::Recording recording = Parsed(R"({"t":0,"device":"0000:43:00.0",)" + line.substr(1) +
                                             "\n{\"t\":5,\"device\":\"0000:43:00.0\",\"drained\":false}\n");
  const auto& rounds = recording.segments[0].rounds;
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[0].devices.at(0).seen.drained, drained.seen.drained);
  EXPECT_FALSE(rounds[1].devices.at(0).seen.drained);
}

TEST(RecordingTest, QuietRounds) {
  const health::Recording recording = Parsed("{\"t\":0}\n{\"t\":5000,\"every\":5000,\"until\":19999}\n");
  const auto& rounds = recording.segments[0].rounds;
  ASSERT_EQ(rounds.size(), 4U);
  EXPECT_EQ(rounds[3].at, milliseconds(15000));
}

TEST(RecordingTest, HeadersJoinWhatSeveralProcessesWrote) {
  const health::Recording recording = Parsed(
      "{\"t\":5000}\n"
      R"({"version":1,"time":"2027-01-15T08:01:00.250Z","t":7000,"continues":true})"
      "\n{\"t\":7000}\n"
      R"({"version":1,"time":"2027-01-15T09:01:00.250Z"})"
      "\n{\"t\":0}\n"
      R"({"version":1,"time":"2026-01-15T08:00:00.250Z"})"
      "\n{\"t\":10}\n");
  ASSERT_EQ(recording.segments.size(), 4U);
  EXPECT_EQ(recording.segments[1].rounds.at(0).at, milliseconds(7000));
  EXPECT_EQ(recording.segments[2].rounds.at(0).at, milliseconds(3'607'000)) << "by the headers' times";
  EXPECT_EQ(recording.segments[3].rounds.at(0).at, milliseconds(3'607'010)) << "a clock that was set back";
}

TEST(RecordingTest, ErrorsNameTheLine) {
  EXPECT_EQ(Refused(""), "it: is empty, not even a header is there");
  EXPECT_EQ(Refused("{\"t\":0}\n"), "it line 1: /version: the first line has to be a header");
  EXPECT_EQ(Refused(kBegin + "{\"t\":5}\n{\"t\":4}\n"), "it line 3: /t: is earlier than the line before");
  EXPECT_EQ(Refused(kBegin + "{\"t\":5,\"device\":\"a\",\"link\":{\"carrier\":1}}\n"),
            "it line 2: /link/carrier: is not true or false but number");
  EXPECT_EQ(Refused(kBegin + "{\"t\":5,\"device\":\"a\",\"lnk\":false}\n"), "it line 2: /lnk: unknown field");
  EXPECT_EQ(Refused(kBegin + "{\"t\":5,\"device\":\"a\",\"port\":{\"state\":\"UP\"}}\n"),
            "it line 2: /port/state: 'UP' is not known");
  EXPECT_EQ(Refused(kBegin + "{\"t\":5,\"device\":\"a/b\"}\n"),
            "it line 2: /device: is not the name of a device");
  EXPECT_EQ(Refused(kBegin + "{\"t\":5,\"health\":{\"lnk\":false}}\n").substr(0, 24),
            "it line 2: /health/lnk: ");
  EXPECT_NE(Refused(kBegin + "{\"t\":0,\"every\":1,\"until\":3000000}\n").find("more than 200000 rounds"),
            std::string::npos);
  EXPECT_NE(Refused(kBegin + "{\"t\":0}\n{\"t\":99999999999}\n").find("a year at most"), std::string::npos);
  EXPECT_NE(Refused(kBegin + "{\"t\":0").find("it line 2: no valid JSON"), std::string::npos);
  EXPECT_NE(Refused(R"({"version":1,"time":"2250-01-15T08:00:00Z"})").find("/time: is not a time"),
            std::string::npos);
  EXPECT_NE(Refused(R"({"version":2,"time":"2027-01-15T08:00:00Z"})").find("/version: "), std::string::npos);
}

TEST(RecordingTest, RulesAreReadAsTheyWere) {
  const std::string settings =
      R"({"intervalSeconds":3,"link":false,"gone":{"upAfter":9},"devlink":{"reporters":["fw","fw_fatal"]},
          "errorRate":{"counters":{"symbol_error":false,"link_downed":{"limit":9},"a_counter":{"limit":1,"seconds":2}}}})";
  for (const std::string& text : {settings, std::string("{}"), std::string("false")}) {
    const auto rules = health::ParseHealthRules(text, "settings");
    ASSERT_TRUE(rules) << rules.error().message;
    const auto again = health::ParseHealthRules(HealthRulesAsJson(*rules).dump(), "again");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_TRUE(*again == *rules) << text;
  }
}

TEST(RecordingTest, AHeaderIsReadAsItWas) {
  health::RecordedHeader header;
  header.node = "gpu-001";
  header.time = At(7).wall + milliseconds(42);
  header.t = milliseconds(12);
  header.continues = true;
  header.rules = health::HealthRules();
  header.devices = {{kPf,
                     false,
                     kPf,
                     "pf0",
                     false,
                     At(1).wall,
                     {{health::HealthRule::kLink, kPf, "", "text", At(1).wall}}}};
  const auto recording = health::ParseRecording(HeaderLine(header), "it");
  ASSERT_TRUE(recording) << recording.error().message;
  const health::RecordedHeader& again = recording->segments.at(0).header;
  EXPECT_EQ(again.node, header.node);
  EXPECT_EQ(again.time, header.time);
  EXPECT_EQ(again.t, header.t);
  EXPECT_TRUE(again.continues);
  EXPECT_TRUE(again.rules == header.rules);
  EXPECT_TRUE(again.devices == header.devices);
}

}  // namespace
}  // namespace railhead::testing

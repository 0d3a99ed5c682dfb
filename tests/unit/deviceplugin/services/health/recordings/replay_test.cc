// Other rules over what was recorded: what they find, and what they cannot know.
#include "deviceplugin/services/health/replay.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A PF with a VF on the host and one in a pod, whose cable is cut from 600 s to 640 s.
const std::string kCut =
    R"({"version":1,"node":"n","time":"2027-01-15T08:00:00Z"})"
    "\n"
    R"({"t":0,"device":"0000:43:00.0","pfName":"pf0","vfs":2,"link":{"netdev":"pf0","up":true,"carrier":true}})"
    "\n"
    R"({"t":0,"device":"0000:43:02.0","pf":"0000:43:00.0","link":{"netdev":"pf0v0"}})"
    "\n"
    R"({"t":0,"device":"0000:43:02.1","pf":"0000:43:00.0","inUse":true})"
    "\n"
    R"({"t":5000,"every":5000,"until":595000})"
    "\n"
    R"({"t":600000,"device":"0000:43:00.0","link":{"carrier":false}})"
    "\n"
    R"({"t":605000,"every":5000,"until":635000})"
    "\n"
    R"({"t":640000,"device":"0000:43:00.0","link":{"carrier":true}})"
    "\n"
    R"({"t":645000,"every":5000,"until":900000})"
    "\n";

health::Recording Parsed(const std::string& text) {
  auto recording = health::ParseRecording(text, "it");
  EXPECT_TRUE(recording) << recording.error().message;
  return recording ? *std::move(recording) : health::Recording{};
}

health::HealthRules Rules(const std::string& settings) {
  auto rules = health::ParseHealthRules(settings, "settings");
  EXPECT_TRUE(rules) << rules.error().message;
  return rules.value_or(health::HealthRules());
}

TEST(ReplayTest, TheRecordedRules) {
  const health::ReplayResult replayed = Replay(Parsed(kCut), std::nullopt);
  ASSERT_EQ(replayed.rounds.size(), 2U);
  EXPECT_EQ(replayed.rounds[0].at, seconds(610));
  EXPECT_EQ(replayed.rounds[0].changes.size(), 3U);
  EXPECT_EQ(replayed.rounds[0].changes[0].time, At(610).wall);
  EXPECT_EQ(replayed.rounds[1].at, seconds(700));
  EXPECT_EQ(replayed.lasted, seconds(900));
  EXPECT_EQ(replayed.round_count, 181U);
}

TEST(ReplayTest, OtherRulesActAtOtherTimes) {
  const health::Recording recording = Parsed(kCut);
  const health::ReplayResult later = Replay(recording, Rules(R"({"link":{"downAfter":30,"upAfter":10}})"));
  ASSERT_EQ(later.rounds.size(), 2U);
  EXPECT_EQ(later.rounds[0].at, seconds(630));
  EXPECT_EQ(later.rounds[1].at, seconds(650));
  EXPECT_TRUE(Replay(recording, Rules(R"({"link":{"downAfter":60}})")).rounds.empty());
  EXPECT_EQ(Replay(recording, health::HealthRules()).rounds.at(0).at, seconds(610)) << "as recorded";
}

TEST(ReplayTest, RulesThatChangedWhileItWasRecorded) {
  std::string text = kCut;
  text.insert(text.find(R"({"t":605000)"), "{\"t\":600000,\"health\":{\"link\":{\"downAfter\":25}}}\n");
  EXPECT_EQ(Replay(Parsed(text), std::nullopt).rounds.at(0).at, seconds(625));
  EXPECT_EQ(Replay(Parsed(text), health::HealthRules()).rounds.at(0).at, seconds(610)) << "one's own stay";
}

TEST(ReplayTest, WhoBeganUnhealthy) {
  std::string text = kCut;
  const std::string reason =
      R"({"rule":"link","device":"0000:43:00.0","text":"no carrier","since":"2027-01-15T07:00:00Z"})";
  const std::string device = R"({"device":"0000:43:00.0","pf":"0000:43:00.0","state":"Unhealthy",)"
                             R"("since":"2027-01-15T07:00:00Z","reasons":[)" +
                             reason + "]}";
  text.insert(text.find("}\n"), ",\"devices\":[" + device + "]");
  const health::Recording recording = Parsed(text);
  const health::ReplayResult replayed = Replay(recording, std::nullopt);
  ASSERT_EQ(replayed.rounds.size(), 4U);
  EXPECT_EQ(replayed.rounds[0].changes.size(), 2U) << "its VFs, of which the header says nothing";
  EXPECT_EQ(replayed.rounds[1].at, seconds(60)) << "good for upAfter";
  EXPECT_EQ(Replay(recording, Rules(R"({"link":{"upAfter":5}})")).rounds.at(1).at, seconds(5));
}

TEST(ReplayTest, WhatCouldNotBeReadIsNotJudged) {
  std::string text = kCut;
  text.insert(text.find(R"({"t":605000)"), "{\"t\":605000,\"device\":\"0000:43:00.0\",\"unread\":true}\n");
  EXPECT_TRUE(Replay(Parsed(text), std::nullopt).rounds.empty());
}

TEST(ReplayTest, MissingListsObservationsThatWereNotRecorded) {
  std::string text = kCut;
  text.insert(text.find("}\n"),
              R"(,"health":{"rdmaPort":false,"errorRate":{"counters":{"symbol_error":false}}})");
  const health::Recording recording = Parsed(text);
  EXPECT_TRUE(Missing(recording, recording.segments[0].header.rules).empty());
  const auto missing = Missing(recording, Rules(R"({"intervalSeconds":1})"));
  ASSERT_EQ(missing.size(), 3U);
  EXPECT_EQ(missing[0], "rule rdmaPort was off, at least for a time: its input was not read then");
  EXPECT_EQ(missing[1], "errorRate: counter symbol_error was not read, at least for a time");
}

TEST(ReplayTest, FaultsThatEndInTheFirstRound) {
  const health::Recording recording = Parsed(
      R"({"version":1,"node":"n","time":"2027-01-15T08:00:00Z","devices":[{"device":"0000:43:00.0",)"
      R"("pf":"0000:43:00.0","vf":false,"state":"Unhealthy","since":"2027-01-15T07:00:00Z","reasons":[]}]})"
      "\n"
      R"({"t":0,"device":"0000:43:00.0"})"
      "\n");
  const health::ReplayResult replayed = Replay(recording, std::nullopt);
  ASSERT_EQ(replayed.rounds.size(), 1U);
  EXPECT_TRUE(replayed.rounds[0].changes.at(0).healthy);
}

}  // namespace
}  // namespace railhead::testing

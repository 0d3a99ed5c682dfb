// What railheadd keeps of its observations: when it writes them, how many, and what it does after an error.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "deviceplugin/services/health/health_recorder.h"
#include "deviceplugin/services/health/recording.h"
#include "deviceplugin/services/health/replay.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

class RecorderTest : public ::testing::Test {
 protected:
  // One tick with this observation of the PF. `change` says whether it was a verdict.
  Result<void> Tick(int second, const health::Observation& seen, bool change = false) {
    recorder_.Begin(At(second), rules_, monitor_);
    (void)monitor_.Observe(Pf(), seen, At(second));
    recorder_.Observe(Pf(), seen);
    return recorder_.End(change);
  }
  [[nodiscard]] std::string Written() const { return temp_.Read("/run/railhead/observations.jsonl"); }
  [[nodiscard]] health::Recording Read() const {
    const auto text = health::ReadOwnRecording(temp_.root());
    EXPECT_TRUE(text && *text);
    auto recording = health::ParseRecording(text->value_or(""), "recording");
    EXPECT_TRUE(recording) << recording.error().message;
    return recording ? *std::move(recording) : health::Recording{};
  }

  TempRoot temp_;
  health::HealthRules rules_;
  health::HealthMonitor monitor_{rules_};
  health::HealthRecorder recorder_{temp_.root(), 4096};
};

TEST_F(RecorderTest, OnlyWhatChangedIsWritten) {
  ASSERT_TRUE(Tick(0, GoodPf()));
  const std::size_t begin = Written().size();
  ASSERT_TRUE(Tick(5, NoCarrier(GoodPf())));
  EXPECT_EQ(
      Written().substr(begin),
      R"({"t":5000,"device":"0000:43:00.0","link":{"carrier":false,"state":"down"},"port":{"state":"DOWN"}})"
      "\n");
}

TEST_F(RecorderTest, QuietRoundsAreWrittenOnceAMinute) {
  ASSERT_TRUE(Tick(0, GoodPf()));
  const std::string begin = Written();
  for (int second = 5; second < 60; second += 5) ASSERT_TRUE(Tick(second, GoodPf()));
  EXPECT_EQ(Written(), begin);
  ASSERT_TRUE(Tick(60, GoodPf()));
  EXPECT_EQ(Split(Written().substr(begin.size()), '\n').size(), 13U) << "twelve, and what is behind the last";
}

TEST_F(RecorderTest, AVerdictIsWrittenAtOnce) {
  ASSERT_TRUE(Tick(0, GoodPf()));
  ASSERT_TRUE(Tick(5, GoodPf(), true));
  EXPECT_TRUE(Written().ends_with("\n{\"t\":5000}\n"));
}

TEST_F(RecorderTest, CountersThatDidNotMoveAreNotWrittenAgain) {
  const auto counted = [](std::uint64_t value) {
    return WithCounter(GoodPf(), health::HealthRule::kErrorRate, "symbol_error", value);
  };
  ASSERT_TRUE(Tick(0, counted(7)));
  const std::size_t begin = Written().size();
  ASSERT_TRUE(Tick(5, GoodPf()));
  ASSERT_TRUE(Tick(30, counted(7)));
  ASSERT_TRUE(Tick(60, counted(9)));
  EXPECT_EQ(Written().substr(begin),
            "{\"t\":5000}\n{\"t\":30000}\n"
            R"({"t":60000,"device":"0000:43:00.0","counters":{"errorRate":{"symbol_error":9}}})"
            "\n");
}

// Under other rules the windows of counters begin again. The next reading then counts as the first.
TEST_F(RecorderTest, CountersAreRecordedAgainUnderOtherRules) {
  const health::Observation seen = WithCounter(GoodPf(), health::HealthRule::kErrorRate, "symbol_error", 7);
  ASSERT_TRUE(Tick(0, seen));
  const std::size_t begin = Written().size();
  rules_.Of(health::HealthRule::kLink).enabled = false;
  ASSERT_TRUE(Tick(30, seen));
  const std::string now = Written().substr(begin);
  EXPECT_TRUE(now.starts_with(R"({"t":30000,"health":{)")) << now;
  EXPECT_TRUE(now.ends_with(R"("counters":{"errorRate":{"symbol_error":7}}})"
                            "\n"))
      << now;
}

TEST_F(RecorderTest, TwoFilesOfBoundedLength) {
  for (int second = 0; second < 3000; second += 5)
    ASSERT_TRUE(Tick(second, second % 10 == 0 ? GoodPf() : NoCarrier(GoodPf())));
  const auto names = FilesBelow(temp_.directory() + "/run/railhead");
  EXPECT_EQ(names, (std::vector<std::string>{"observations.jsonl", "observations.old.jsonl"}));
  // The bound, the header and a round.
  EXPECT_LT(Written().size(), 4096U + 4096U);
  EXPECT_LT(temp_.Read("/run/railhead/observations.old.jsonl").size(), 4096U + 4096U);
  const health::Recording recording = Read();
  ASSERT_EQ(recording.segments.size(), 2U);
  EXPECT_TRUE(recording.segments[1].header.continues);
  EXPECT_EQ(recording.segments[1].rounds.front().at - recording.segments[0].rounds.back().at,
            std::chrono::seconds(5));
}

// A counter's window or a hysteresis continues when another file begins.
TEST_F(RecorderTest, AReplayGoesOnIntoTheNextFile) {
  std::vector<std::string> said;
  const auto note = [](const health::HealthChange& change) {
    return health::FormatMillis(change.time) + (change.healthy ? " Healthy" : " Unhealthy");
  };
  int second = 0;
  for (int after = 0; after < 60; second += 5) {
    const auto errors = static_cast<std::uint64_t>(second / 30);
    const health::Observation seen = WithCounter(second % 200 < 40 ? NoCarrier(GoodPf()) : GoodPf(),
                                                 health::HealthRule::kErrorRate, "symbol_error", errors);
    recorder_.Begin(At(second), rules_, monitor_);
    const auto changes = monitor_.Observe(Pf(), seen, At(second));
    for (const health::HealthChange& change : changes) said.push_back(note(change));
    recorder_.Observe(Pf(), seen);
    ASSERT_TRUE(recorder_.End(!changes.empty()));
    if (temp_.Exists("/run/railhead/observations.old.jsonl")) ++after;
  }
  const health::Recording recording = Read();
  ASSERT_EQ(recording.segments.size(), 2U) << "nothing is lost yet";
  std::vector<std::string> again;
  for (const health::ReplayRound& round : Replay(recording, std::nullopt).rounds) {
    for (const health::HealthChange& change : round.changes) again.push_back(note(change));
  }
  EXPECT_EQ(again, said);
  EXPECT_GT(said.size(), 8U);
}

TEST_F(RecorderTest, WhatAKilledProcessWroteByHalfIsLeftOut) {
  ASSERT_TRUE(Tick(0, GoodPf()));
  temp_.Write("/run/railhead/observations.jsonl", Written() + R"({"t":5000,"dev)");
  EXPECT_EQ(Read().segments.size(), 1U) << "before the next process writes";
  health::HealthRecorder next(temp_.root());
  next.Begin(At(10), rules_, monitor_);
  next.Observe(Pf(), GoodPf());
  ASSERT_TRUE(next.End(false));
  const health::Recording recording = Read();
  ASSERT_EQ(recording.segments.size(), 2U);
  EXPECT_FALSE(recording.segments[1].header.continues);
  EXPECT_EQ(recording.segments[1].at, std::chrono::seconds(10)) << "by the header's time";
}

TEST_F(RecorderTest, AfterAnErrorItBeginsAnew) {
  ASSERT_TRUE(Tick(0, GoodPf()));
  const std::string path = temp_.directory() + "/run/railhead/observations.jsonl";
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  const auto failed = Tick(5, NoCarrier(GoodPf()));
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error().message.starts_with("keeping what was observed: ")) << failed.error().message;
  std::filesystem::remove(path);
  ASSERT_TRUE(Tick(10, NoCarrier(GoodPf())));
  const health::Recording recording = Read();
  ASSERT_EQ(recording.segments.size(), 1U);
  EXPECT_FALSE(recording.segments[0].rounds.at(0).devices.at(0).seen.link->carrier) << "all of it is told";
}

TEST_F(RecorderTest, AFileThatWasRemovedIsNotGoneOnWith) {
  ASSERT_TRUE(Tick(0, GoodPf()));
  std::filesystem::remove(temp_.directory() + "/run/railhead/observations.jsonl");
  EXPECT_FALSE(Tick(5, NoCarrier(GoodPf())));
  ASSERT_TRUE(Tick(10, NoCarrier(GoodPf())));
  EXPECT_EQ(Read().segments.size(), 1U);
}

// 8 PFs of 32 VFs for an hour, each PF's symbol errors rising all the time: docs/reference/recording.md has
// the figures.
TEST_F(RecorderTest, AnHourOfABusyNodeIsSmall) {
  health::HealthRecorder recorder(temp_.root());
  for (int second = 0; second < 3600; second += 5) {
    recorder.Begin(At(second), rules_, monitor_);
    for (int pf = 0; pf < 8; ++pf) {
      health::HealthSubject subject = Pf(32);
      subject.id = subject.pf_id = "0000:" + std::to_string(40 + pf) + ":00.0";
      const auto errors = static_cast<std::uint64_t>(second) * 40;
      recorder.Observe(subject, second % 30 == 0 ? WithCounter(GoodPf(), health::HealthRule::kErrorRate,
                                                               "symbol_error", errors)
                                                 : GoodPf());
      for (int vf = 0; vf < 32 && second % 60 == 0; ++vf) {
        health::HealthSubject one = Vf(subject.id.substr(0, 8) + std::to_string(10 + vf) + ".0");
        one.pf_id = subject.id;
        recorder.Observe(one, GoodVf());
      }
    }
    ASSERT_TRUE(recorder.End(false));
  }
  const std::size_t size = Written().size();
  RecordProperty("bytes", static_cast<int>(size));
  EXPECT_LT(size, 160U * 1024U);
  EXPECT_EQ(Read().segments.size(), 1U);
}

}  // namespace
}  // namespace railhead::testing

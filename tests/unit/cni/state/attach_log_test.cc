// The log of attach timings: whole lines, bounded, by several at once.
#include "cni/state/attach_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cni/state/attach_log_tail.h"
#include "cni/state/phase_clock.h"
#include "netns/base/text.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

constexpr const char* kLog = "/run/railhead/attach.log";

class AttachLogTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(temp_.directory() + "/run/railhead"); }

  static AttachTiming Timing(const std::string& container, std::size_t padding = 0) {
    return {{"rails", container, "net1"},
            8,
            std::string(padding, 'x'),
            {{"acquire", std::chrono::microseconds(1500)}, {"move", std::chrono::microseconds(200000)}}};
  }
  [[nodiscard]] std::vector<nlohmann::json> Lines(const std::string& path) const {
    std::vector<nlohmann::json> lines;
    for (const auto& line : Split(temp_.Read(path), '\n')) {
      if (!line.empty()) lines.push_back(nlohmann::json::parse(line, nullptr, false));
    }
    return lines;
  }
  [[nodiscard]] std::size_t Size(const std::string& path) const { return temp_.Read(path).size(); }

  TempRoot temp_;
};

TEST_F(AttachLogTest, OneObjectALine) {
  LogAttachTiming(temp_.root(), Timing("c1"));
  AttachTiming failed = Timing("c2");
  failed.error = "moving \"x\"\nfailed";
  LogAttachTiming(temp_.root(), failed);
  const auto lines = Lines(kLog);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["containerId"], "c1");
  EXPECT_EQ(lines[0]["network"], "rails");
  EXPECT_EQ(lines[0]["ifname"], "net1");
  EXPECT_EQ(lines[0]["links"], 8);
  EXPECT_EQ(lines[0]["phasesUs"]["move"], 200000);
  EXPECT_EQ(lines[0]["totalUs"], 201500);
  EXPECT_FALSE(lines[0].contains("error"));
  EXPECT_GT(lines[0]["time"], 1500000000);
  EXPECT_EQ(lines[1]["error"], "moving \"x\"\nfailed");
}

TEST_F(AttachLogTest, AFailureHasItsTimePodAndError) {
  AttachTiming failed = Timing("c1");
  failed.error = "device 0000:43:10.0 has no carrier";
  failed.hint = "check the cable";
  failed.code = 11;
  failed.pod = "train/worker-0";
  failed.pod_uid = "uid-1";
  LogAttachTiming(temp_.root(), failed);
  LogAttachTiming(temp_.root(), Timing("c2"));
  const auto timings = ReadAttachTimings(temp_.root());
  ASSERT_TRUE(timings);
  ASSERT_EQ(timings->size(), 2U);
  const AttachTiming& read = (*timings)[0];
  EXPECT_GT(read.time, std::chrono::system_clock::time_point(std::chrono::seconds(1500000000)));
  EXPECT_EQ(read.error, failed.error);
  EXPECT_EQ(read.hint, failed.hint);
  EXPECT_EQ(read.code, 11);
  EXPECT_EQ(read.pod, "train/worker-0");
  EXPECT_EQ(read.pod_uid, "uid-1");
  for (const char* key : {"code", "hint", "pod", "podUid"})
    EXPECT_FALSE(Lines(kLog)[1].contains(key)) << "a successful ADD has no " << key;
}

TEST_F(AttachLogTest, TextThatIsNoUtf8IsStillALine) {
  AttachTiming timing = Timing("c1");
  timing.error = "interface \xff\xfe";
  LogAttachTiming(temp_.root(), timing);
  ASSERT_EQ(Lines(kLog).size(), 1U);
  EXPECT_FALSE(Lines(kLog)[0].is_discarded());
}

// A reader of timings skips it.
TEST_F(AttachLogTest, ARebindIsALineOfItsOwn) {
  LogAttachTiming(temp_.root(), Timing("c1"));
  LogRebind(temp_.root(), {"rails", "c1", "net1"}, "0000:43:10.0", "rings.rx (Device or resource busy)");
  LogAttachTiming(temp_.root(), Timing("c2"));
  const auto lines = Lines(kLog);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1]["containerId"], "c1");
  EXPECT_EQ(lines[1]["device"], "0000:43:10.0");
  EXPECT_EQ(lines[1]["reboundFor"], "rings.rx (Device or resource busy)");
  const auto timings = ReadAttachTimings(temp_.root());
  ASSERT_TRUE(timings);
  ASSERT_EQ(timings->size(), 2U);
  EXPECT_EQ((*timings)[1].key.container_id, "c2");
}

TEST_F(AttachLogTest, Bounded) {
  constexpr std::size_t kLine = 4000;
  const std::size_t lines = 5 * kMaxAttachLog / kLine;
  for (std::size_t i = 0; i < lines; ++i) {
    LogAttachTiming(temp_.root(), Timing("c" + std::to_string(i), kLine));
    ASSERT_LE(Size(kLog), kMaxAttachLog + 2 * kLine);
  }
  EXPECT_LE(Size(std::string(kLog) + ".1"), kMaxAttachLog + 2 * kLine);
  const auto files = FilesBelow(temp_.directory() + "/run/railhead");
  EXPECT_EQ(files, (std::vector<std::string>{"attach.log", "attach.log.1"}));
  const auto now = Lines(kLog);
  ASSERT_FALSE(now.empty());
  EXPECT_EQ(now.back()["containerId"], "c" + std::to_string(lines - 1)) << "the latest is there";
}

// Processes, or here threads, do not mix their lines, and at the bound none is torn.
TEST_F(AttachLogTest, SeveralAtOnce) {
  constexpr int kWriters = 8;
  constexpr int kEach = 200;
  std::vector<std::thread> writers;
  writers.reserve(kWriters);
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([this, writer] {
      for (int i = 0; i < kEach; ++i) {
        LogAttachTiming(temp_.root(), Timing("w" + std::to_string(writer) + "-" + std::to_string(i), 300));
      }
    });
  }
  for (auto& writer : writers) writer.join();
  std::size_t lines = 0;
  for (const auto& path : {std::string(kLog), std::string(kLog) + ".1"}) {
    for (const auto& line : Lines(path)) {
      ASSERT_TRUE(line.is_object()) << "torn";
      EXPECT_EQ(line["totalUs"], 201500);
      ++lines;
    }
  }
  EXPECT_GT(Size(std::string(kLog) + ".1"), kMaxAttachLog)
      << "the older log was replaced by one that had just begun";
  EXPECT_LE(lines, static_cast<std::size_t>(kWriters * kEach));
}

// An ADD does not fail because its time cannot be noted.
TEST_F(AttachLogTest, WhatCannotBeWrittenIsDropped) {
  std::filesystem::remove_all(temp_.directory() + "/run/railhead");
  LogAttachTiming(temp_.root(), Timing("c1"));
  EXPECT_FALSE(temp_.Exists(kLog));
  std::filesystem::create_directories(temp_.directory() + kLog);
  LogAttachTiming(temp_.root(), Timing("c1"));
  EXPECT_TRUE(std::filesystem::is_directory(temp_.directory() + kLog));
}

TEST(PhaseClockTest, PhasesWithoutGaps) {
  PhaseClock clock;
  const auto begin = std::chrono::steady_clock::now();
  clock.Done("first");
  clock.Done("second");
  const auto spent = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(clock.phases().size(), 2U);
  EXPECT_EQ(clock.phases()[0].first, "first");
  EXPECT_EQ(clock.phases()[1].first, "second");
  EXPECT_GE(clock.phases()[1].second.count(), 0);
  EXPECT_LE(clock.phases()[1].second, spent);
}

// Containers of what came, as "c1 c2".
std::string Came(AttachLogTail& tail) {
  const auto timings = tail.Next();
  EXPECT_TRUE(timings);
  std::vector<std::string> containers;
  for (const AttachTiming& timing : *timings) containers.push_back(timing.key.container_id);
  return Join(containers, " ");
}

TEST_F(AttachLogTest, TheTailTellsEachOnceAndNothingOfBefore) {
  LogAttachTiming(temp_.root(), Timing("before"));
  AttachLogTail tail(temp_.root());
  EXPECT_EQ(Came(tail), "");
  LogAttachTiming(temp_.root(), Timing("c1"));
  LogAttachTiming(temp_.root(), Timing("c2"));
  EXPECT_EQ(Came(tail), "c1 c2");
  EXPECT_EQ(Came(tail), "");
}

TEST_F(AttachLogTest, TheTailFollowsALogThatBeginsLaterAndOneThatBeginsAnew) {
  AttachLogTail tail(temp_.root());
  EXPECT_EQ(Came(tail), "");
  LogAttachTiming(temp_.root(), Timing("first"));
  EXPECT_EQ(Came(tail), "first");
  LogAttachTiming(temp_.root(), Timing("long", kMaxAttachLog));  // the next one begins a file
  LogAttachTiming(temp_.root(), Timing("next"));
  EXPECT_EQ(Came(tail), "long next");
  std::filesystem::remove(temp_.directory() + kLog);
  EXPECT_EQ(Came(tail), "");
  LogAttachTiming(temp_.root(), Timing("anew"));
  EXPECT_EQ(Came(tail), "anew");
}

TEST_F(AttachLogTest, TheTailWaitsForTheEndOfALine) {
  LogAttachTiming(temp_.root(), Timing("before"));
  AttachLogTail tail(temp_.root());
  LogAttachTiming(temp_.root(), Timing("c1"));
  const std::string whole = temp_.Read(kLog);
  std::filesystem::resize_file(temp_.directory() + kLog, whole.size() - 5);
  EXPECT_EQ(Came(tail), "");
  std::ofstream(temp_.directory() + kLog, std::ios::app) << whole.substr(whole.size() - 5);
  EXPECT_EQ(Came(tail), "c1");
}

}  // namespace
}  // namespace railhead::testing

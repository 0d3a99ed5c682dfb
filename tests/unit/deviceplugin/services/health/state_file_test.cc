#include "deviceplugin/services/health/state_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

constexpr const char* kPath = "/run/railhead/health.json";

health::HealthReason Reason(health::HealthRule rule = health::HealthRule::kLink,
                            const std::string& counter = {}) {
  return {rule, kPf, counter, "PF \"pf0\" \xff has no carrier", At(3).wall};
}

health::HealthState State() {
  health::HealthState state;
  state.devices = {{kPf, false, kPf, "pf0", false, At(3).wall, {Reason()}},
                   {kVf, true, kPf, "pf0", true, At(0).wall, {}}};
  state.history = {
      {At(3).wall, kPf, true, 2, false, {Reason()}, {}},
      {At(9).wall, kVf, true, 0, true, {}, {Reason(health::HealthRule::kErrorRate, "symbol_error")}}};
  return state;
}

health::HealthChange Change(const std::string& device, bool healthy, const std::string& whose, int second) {
  health::HealthChange change;
  change.device = device;
  change.is_vf = device != kPf;
  change.pf = kPf;
  change.healthy = healthy;
  change.flipped = true;
  health::HealthReason reason = Reason();
  reason.device = whose;
  (healthy ? change.ended : change.started) = {reason};
  change.time = At(second).wall;
  return change;
}

class StateFileTest : public ::testing::Test {
 protected:
  std::string ErrorOf(const std::string& text) {
    temp_.Write(kPath, text);
    const auto state = health::kHealthFile.Read(temp_.root());
    return state ? "accepted" : Describe(state.error());
  }
  TempRoot temp_;
};

TEST_F(StateFileTest, WhatIsWrittenIsRead) {
  ASSERT_TRUE(health::kHealthFile.Write(temp_.root(), State()));
  const auto state = health::kHealthFile.Read(temp_.root());
  ASSERT_TRUE(state && *state) << Describe(state.error());
  health::HealthState wanted = State();
  // Bytes that are not UTF-8 are replaced.
  for (health::HealthReason* reason : {&wanted.devices[0].reasons.front(), &wanted.history[0].started.front(),
                                       &wanted.history[1].ended.front()}) {
    reason->text = "PF \"pf0\" \xef\xbf\xbd has no carrier";
  }
  EXPECT_EQ(**state, wanted);
}

TEST_F(StateFileTest, AbsenceIsAValue) {
  const auto state = health::kHealthFile.Read(temp_.root());
  ASSERT_TRUE(state);
  EXPECT_EQ(*state, std::nullopt);
}

TEST_F(StateFileTest, EveryoneMayReadIt) {
  ASSERT_TRUE(health::kHealthFile.Write(temp_.root(), State()));
  struct stat info {};
  ASSERT_EQ(::stat(health::kHealthFile.PathIn(temp_.root()).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0644U);
  EXPECT_FALSE(temp_.Exists(std::string(kPath) + std::string(kTemporarySuffix)));
}

TEST_F(StateFileTest, WhatIsNoneOfOursIsNamed) {
  EXPECT_NE(ErrorOf("").find("health.json: no valid JSON"), std::string::npos);
  EXPECT_NE(ErrorOf("[]").find("is not an object"), std::string::npos);
  EXPECT_NE(ErrorOf("{}").find("/version: is required"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"version": 2})").find("/version: 2 is out of range"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"version": 1, "devices": [{"device": "x"}]})").find("/devices/0/pf: is required"),
            std::string::npos);
  const std::string device = R"({"version": 1, "devices": [{"device": "x", "pf": "x", "since": "SINCE",
                                 "state": "STATE"}]})";
  const auto with = [&](const std::string& state, const std::string& since) {
    std::string text = device;
    text.replace(text.find("STATE"), 5, state);
    return text.replace(text.find("SINCE"), 5, since);
  };
  EXPECT_EQ(ErrorOf(with("Healthy", "2026-03-01T12:00:00Z")), "accepted");
  EXPECT_NE(ErrorOf(with("healthy", "2026-03-01T12:00:00Z")).find("/devices/0/state: 'healthy' is not known"),
            std::string::npos);
  EXPECT_NE(ErrorOf(with("Healthy", "yesterday")).find("/devices/0/since: 'yesterday' is not a time"),
            std::string::npos);
}

TEST_F(StateFileTest, RulesOfALaterVersionArePassedOver) {
  ASSERT_TRUE(health::kHealthFile.Write(temp_.root(), State()));
  auto json = nlohmann::json::parse(temp_.Read(kPath));
  json["devices"][0]["reasons"].push_back({{"rule", "temperature"}, {"device", kPf}});
  json["extra"] = 1;
  temp_.Write(kPath, json.dump());
  const auto state = health::kHealthFile.Read(temp_.root());
  ASSERT_TRUE(state && *state);
  EXPECT_EQ((*state)->devices[0].reasons.size(), 1U);
}

TEST_F(StateFileTest, AFailedWriteIsReportedWithThePath) {
  temp_.Write("/run/railhead", "a file");
  const auto written = health::kHealthFile.Write(temp_.root(), State());
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("saving health: "), std::string::npos);
  EXPECT_NE(written.error().message.find("/run/railhead"), std::string::npos);
}

TEST(HealthHistoryTest, APfAndItsVfsAreOneEntry) {
  std::vector<health::HealthRecord> history;
  AppendHistory({Change(kPf, false, kPf, 1), Change(kVf, false, kPf, 1), Change(kVf2, false, kPf, 1)},
                &history);
  ASSERT_EQ(history.size(), 1U);
  EXPECT_EQ(history[0].device, kPf);
  EXPECT_TRUE(history[0].itself);
  EXPECT_EQ(history[0].vfs, 2U);
  EXPECT_FALSE(history[0].healthy);
  // The next round is its own entry, and so is what a VF has by itself.
  AppendHistory({Change(kVf, true, kPf, 9), Change(kVf2, true, kPf, 9), Change(kVf2, false, kVf2, 9)},
                &history);
  ASSERT_EQ(history.size(), 3U);
  EXPECT_EQ(history[1].device, kPf);
  EXPECT_FALSE(history[1].itself) << "the PF itself did not change";
  EXPECT_EQ(history[1].vfs, 2U);
  EXPECT_EQ(history[2].device, kVf2);
  EXPECT_TRUE(history[2].itself);
}

TEST(HealthHistoryTest, TheNewestStay) {
  std::vector<health::HealthRecord> history;
  for (int i = 0; i < 300; ++i) AppendHistory({Change(kVf, i % 2 == 0, kVf, i)}, &history);
  ASSERT_EQ(history.size(), health::kHealthHistory);
  EXPECT_EQ(history.back().time, At(299).wall);
  EXPECT_EQ(history.front().time, At(44).wall);
}

TEST(HealthTimeTest, Rfc3339) {
  const auto time = std::chrono::system_clock::time_point(std::chrono::milliseconds(1772366400999));
  EXPECT_EQ(FormatTime(time), "2026-03-01T12:00:00Z");
  EXPECT_EQ(ParseTime("2026-03-01T12:00:00Z"), std::chrono::floor<std::chrono::seconds>(time));
  EXPECT_EQ(ParseTime("2026-03-01T12:00:00"), std::nullopt);
  EXPECT_EQ(ParseTime("2026-03-01T12:00:00Zx"), std::nullopt);
  EXPECT_EQ(ParseTime("2026-13-01T12:00:00Z"), std::nullopt);
  // Found by the fuzzer: beyond what the clock counts to.
  EXPECT_EQ(ParseTime("3578-03-01T12:00:00Z"), std::nullopt);
  EXPECT_EQ(ParseTime("1000-03-01T12:00:00Z"), std::nullopt);
  EXPECT_TRUE(ParseTime("2262-01-01T00:00:00Z"));
}

}  // namespace
}  // namespace railhead::testing

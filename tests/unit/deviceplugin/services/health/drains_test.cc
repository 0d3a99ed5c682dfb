// What an operator takes out of use: the file, and what it does to health.
#include "deviceplugin/services/health/drains.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "cni/state/journal.h"
#include "deviceplugin/services/health/unready_devices.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/health/watch_fixture.h"

namespace railhead::testing {
namespace {

health::Drain OfPf() {
  return {kPf, "rail0", "cable swap", At(100).wall};
}

TEST(DrainsTest, AreKeptAndRemoved) {
  const TempRoot temp;
  EXPECT_EQ(health::ReadDrains(temp.root()).value(), std::vector<health::Drain>());
  EXPECT_EQ(AddDrain(temp.root(), OfPf()), true);
  const health::Drain vf{kVf, kVf, "", At(200).wall};
  EXPECT_EQ(AddDrain(temp.root(), vf), true);
  EXPECT_EQ(health::ReadDrains(temp.root()).value(), (std::vector<health::Drain>{OfPf(), vf}));
  health::Drain again = OfPf();
  again.reason = "another";
  EXPECT_EQ(AddDrain(temp.root(), again), false);
  EXPECT_EQ(health::ReadDrains(temp.root()).value().front(), OfPf()) << "as it was";
  EXPECT_EQ(health::RemoveDrain(temp.root(), kPf), true);
  EXPECT_EQ(health::RemoveDrain(temp.root(), kPf), false);
  EXPECT_EQ(health::ReadDrains(temp.root()).value(), std::vector<health::Drain>{vf});
}

TEST(DrainsTest, SeveralAtOnceLoseNothing) {
  const TempRoot temp;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&temp, i] {
      EXPECT_EQ(health::AddDrain(temp.root(), {"0000:43:00." + std::to_string(i), "x", "", At(i).wall}),
                true);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(health::ReadDrains(temp.root()).value().size(), 8U);
}

constexpr const char* kNoneOfOurs[] = {
    "{",
    "[]",
    "{}",
    R"({"version": 2, "drains": []})",
    R"({"version": 1, "drains": [{}]})",
    R"({"version": 1, "drains": [{"device": "a", "since": "yesterday"}]})"};

TEST(DrainsTest, WhatIsNoneOfOursIsRefusedAndStays) {
  const TempRoot temp;
  for (const char* text : kNoneOfOurs) {
    temp.Write("/var/lib/railhead/drains.json", text);
    EXPECT_FALSE(health::ReadDrains(temp.root())) << text;
    EXPECT_FALSE(AddDrain(temp.root(), OfPf())) << text;
    EXPECT_EQ(temp.Read("/var/lib/railhead/drains.json"), text);
  }
}

TEST_F(WatchTest, DrainedFunctionsThemselvesAndWithTheirPf) {
  EXPECT_EQ(health::DrainedAmong(sysfs_.root(), functions_), std::set<std::string>{});
  ASSERT_TRUE(health::AddDrain(sysfs_.root(), {kVf2, kVf2, "", At(0).wall}));
  EXPECT_EQ(health::DrainedAmong(sysfs_.root(), functions_), std::set<std::string>{kVf2});
  ASSERT_TRUE(AddDrain(sysfs_.root(), OfPf()));
  EXPECT_EQ(health::DrainedAmong(sysfs_.root(), functions_), (std::set<std::string>{kPf, kVf, kVf2}));
}

TEST(DrainListTest, SeesChangesAndKeepsWhatItHasAfterAnError) {
  const TempRoot temp;
  health::DrainList list(temp.root());
  EXPECT_EQ(list.Refresh(), false);
  ASSERT_TRUE(AddDrain(temp.root(), OfPf()));
  EXPECT_EQ(list.Refresh(), true);
  EXPECT_EQ(list.Refresh(), false);
  ASSERT_NE(list.Find(kPf), nullptr);
  EXPECT_EQ(*list.Find(kPf), OfPf());
  EXPECT_EQ(list.Find(kVf), nullptr);
  temp.Write("/var/lib/railhead/drains.json", "{");
  EXPECT_FALSE(list.Refresh());
  EXPECT_FALSE(list.Refresh()) << "as long as it is so";
  EXPECT_NE(list.Find(kPf), nullptr);
  std::filesystem::remove(temp.directory() + "/var/lib/railhead/drains.json");
  EXPECT_EQ(list.Refresh(), true);
  EXPECT_EQ(list.Find(kPf), nullptr);
}

TEST_F(WatchTest, ADrainedPfAndItsVfsAreUnhealthyAtOnceAndBackAtOnce) {
  // Switches off every rule that has a switch.
  Restart(health::ParseHealthRules("false", "fabric.json").value());
  in_use_ = {kVf2};
  sysfs_.MoveToPod(kVf2);
  ASSERT_TRUE(Run(0, 5).empty());
  ASSERT_TRUE(AddDrain(sysfs_.root(), OfPf()));
  EXPECT_EQ(Run(10, 10).size(), 3U);
  const auto reasons = watch_->Reasons(kVf2);
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons[0].rule, health::HealthRule::kDrained);
  EXPECT_EQ(reasons[0].text, "PF pf0 (0000:43:00.0) is drained: cable swap (railctl undrain rail0)");
  Restart();
  EXPECT_FALSE(watch_->IsHealthy(kVf)) << "a restart changes nothing";
  EXPECT_TRUE(Run(15, 15).empty());
  ASSERT_TRUE(health::RemoveDrain(sysfs_.root(), kPf));
  EXPECT_EQ(Run(20, 20).size(), 3U);
  for (const char* id : {kPf, kVf, kVf2}) EXPECT_TRUE(watch_->IsHealthy(id));
}

TEST_F(WatchTest, ADrainedVfIsSeenBetweenTwoLooksAtVfsAndItsSiblingsAreWell) {
  ASSERT_TRUE(Run(0, 10).empty());
  ASSERT_TRUE(health::AddDrain(sysfs_.root(), {kVf, kVf, "", At(12).wall}));
  const auto changes = Run(15, 15);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].device, kVf);
  EXPECT_EQ(changes[0].reasons.at(0).text,
            std::string("VF ") + kVf + " is drained (railctl undrain " + kVf + ")");
  EXPECT_TRUE(watch_->IsHealthy(kVf2));
  EXPECT_TRUE(watch_->IsHealthy(kPf));
}

TEST_F(WatchTest, ADeviceWhoseEntryCannotBeReadIsUnhealthyUntilItIsRestored) {
  // Switches off every rule that has a switch.
  Restart(health::ParseHealthRules("false", "fabric.json").value());
  sysfs_.Write("/proc/sys/kernel/random/boot_id", "1111-2222\n");
  ASSERT_TRUE(Run(0, 5).empty());
  sysfs_.Write("/run/railhead/attachments/c1/rails@net1.json", "{");
  sysfs_.Write("/run/railhead/locks/" + std::string(kVf) + ".lock", "c1/rails@net1.json\n");
  const auto changes = Run(10, 10);
  ASSERT_EQ(changes.size(), 1U) << "its siblings and its PF are well";
  EXPECT_EQ(changes[0].device, kVf);
  EXPECT_EQ(changes[0].reasons.at(0).rule, health::HealthRule::kNotReady);
  EXPECT_NE(changes[0].reasons.at(0).text.find("c1/rails@net1"), std::string::npos);
  EXPECT_NE(changes[0].reasons.at(0).text.find("railctl journal restore"), std::string::npos);
  sysfs_.Remove("/run/railhead/attachments/c1");
  EXPECT_EQ(Run(15, 15).size(), 1U);
  EXPECT_TRUE(watch_->IsHealthy(kVf));
}

class LeftoversTest : public ::testing::Test {
 protected:
  LeftoversTest() {
    temp_.Write("/proc/sys/kernel/random/boot_id", "1111-2222\n");
    entry_.key = {"rails", "c1", "net1"};
    entry_.boot_id = "1111-2222";
    entry_.phase = Phase::kDone;
    entry_.netns = temp_.directory() + "/netns/cni-1";
    AttachedDevice device;
    device.device = kVf;
    entry_.devices = {device};
    temp_.Write("/netns/cni-1", "");
    EXPECT_TRUE(Journal(temp_.root()).Write(entry_));
  }
  std::string ReasonAt(int seconds) {
    EXPECT_TRUE(unready_.Refresh(At(seconds).steady));
    EXPECT_EQ(unready_.Find(kVf2), "");
    return unready_.Find(kVf);
  }

  TempRoot temp_;
  JournalEntry entry_;
  health::UnreadyDevices unready_{temp_.root()};
};

TEST_F(LeftoversTest, ADeviceThatDoesNotComeBackWithItsNamespaceIsNotReady) {
  EXPECT_EQ(ReasonAt(0), "");
  std::filesystem::remove_all(temp_.directory() + "/netns/cni-1");
  EXPECT_EQ(ReasonAt(100), "") << "DEL may come yet";
  EXPECT_EQ(ReasonAt(129), "");
  EXPECT_NE(ReasonAt(130).find("c1"), std::string::npos) << unready_.Find(kVf);
  ASSERT_TRUE(Journal(temp_.root()).Remove(entry_));
  EXPECT_EQ(ReasonAt(131), "") << "it came back";
}

TEST_F(LeftoversTest, ANamespaceThatMayOnlyBeHiddenIsNotGone) {
  std::filesystem::remove_all(temp_.directory() + "/netns");
  EXPECT_EQ(ReasonAt(0), "");
  EXPECT_EQ(ReasonAt(1000), "");
}

// While drains.json is unreadable, railheadd does not know which devices an operator has drained. It gives
// none out, at a start or later, until the file is fixed or removed.
TEST_F(WatchTest, NoDeviceIsWellWhileTheDrainsCannotBeRead) {
  int now = 0;
  for (const bool at_start : {true, false}) {
    for (const char* text : kNoneOfOurs) {
      SCOPED_TRACE(std::string(at_start ? "at a start: " : "later: ") + text);
      ASSERT_TRUE(health::AddDrain(sysfs_.root(), {kVf2, kVf2, "", At(now).wall}));
      if (!at_start) (void)Tick(now);
      const std::string drained = ReadFileAt(sysfs_.directory() + "/var/lib/railhead/drains.json");
      sysfs_.Write("/var/lib/railhead/drains.json", text);
      if (at_start) {
        sysfs_.Remove("/run/railhead/health.json");
        // Switches off every rule that has a switch.
        Restart(health::ParseHealthRules("false", "fabric.json").value());
      }
      EXPECT_FALSE(health::DrainedAmong(sysfs_.root(), functions_)) << "before the first look";
      const health::HealthTick tick = Tick(now += 5);
      EXPECT_EQ(tick.problems.size(), 1U);
      for (const char* id : {kPf, kVf, kVf2}) {
        EXPECT_FALSE(watch_->IsHealthy(id)) << id;
        const auto reasons = watch_->Reasons(id);
        ASSERT_FALSE(reasons.empty()) << id;
        EXPECT_EQ(reasons.back().rule, health::HealthRule::kNotReady);
        EXPECT_NE(reasons.back().text.find("drains.json"), std::string::npos) << reasons.back().text;
      }
      sysfs_.Write("/var/lib/railhead/drains.json", drained);
      EXPECT_TRUE(Tick(now += 5).problems.empty());
      for (const char* id : {kPf, kVf}) EXPECT_TRUE(watch_->IsHealthy(id)) << id;
      EXPECT_FALSE(watch_->IsHealthy(kVf2));
      ASSERT_TRUE(health::RemoveDrain(sysfs_.root(), kVf2));
      (void)Tick(now += 5);
      EXPECT_TRUE(watch_->IsHealthy(kVf2));
    }
  }
}

// Nor is it known whose attachments are unreadable, while they cannot be listed.
TEST_F(WatchTest, NoDeviceIsWellWhileTheJournalCannotBeListed) {
  ASSERT_TRUE(Run(0, 5).empty());
  sysfs_.Link("/run/railhead/attachments", "/run/railhead/attachments");
  EXPECT_EQ(Tick(10).problems.size(), 1U);
  for (const char* id : {kPf, kVf, kVf2}) EXPECT_FALSE(watch_->IsHealthy(id)) << id;
}

TEST_F(WatchTest, ADamagedListOfDrainsIsReportedOnce) {
  sysfs_.Write("/var/lib/railhead/drains.json", "{");
  EXPECT_EQ(Tick(0).problems.size(), 1U);
  EXPECT_TRUE(Tick(5).problems.empty());
}

}  // namespace
}  // namespace railhead::testing

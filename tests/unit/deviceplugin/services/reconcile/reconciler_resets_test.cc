// The reconciler resets devices that wait for their next pod.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "cni/state/paths.h"
#include "cni/state/tenants.h"
#include "netns/base/state_folder.h"
#include "tests/support/daemon/reconciler_fixture.h"

namespace railhead::testing {
namespace {

class ReconcilerResetsTest : public ReconcilerFixture {
 protected:
  void SetUp() override {
    permissions_ = R"(,"devices":"any")";
    ReconcilerFixture::SetUp();
  }
  [[nodiscard]] Call Of(const std::string& pod_namespace, int n = 0) const {
    return {.config = Usual(n) + R"(,"ncclConfig":"off")",
            .args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=" + pod_namespace + ";K8S_POD_NAME=train"};
  }
  void AddAndDel(const Call& call) {
    const auto added = Add(call);
    ASSERT_TRUE(added) << Describe(added.error());
    const auto deleted = Del(call);
    ASSERT_TRUE(deleted) << Describe(deleted.error());
  }
  // What one pass of the same reconciler reports.
  std::string Pass() { return ListActions(reconciler_.Run()); }
  // What each pass with nothing to do reports.
  void ExpectIdle(int passes) {
    for (int pass = 0; pass < passes; ++pass) EXPECT_EQ(Pass(), "");
    EXPECT_EQ(Rebinds(), 0);
  }
  int Rebinds() {
    const std::string log = kernel_.Log();
    const std::string call = "RebindDriver " + Bdf(0);
    int count = 0;
    for (auto at = log.find(call); at != std::string::npos; at = log.find(call, at + 1)) ++count;
    return count;
  }
  [[nodiscard]] bool HasTenant(int n = 0) const {
    return *ReadTenant(sysfs_.root(), Bdf(0, n)) != std::nullopt;
  }

  static reconcile::ReconcileOptions AtOnce() {
    reconcile::ReconcileOptions options;
    options.idle = std::chrono::seconds(0);
    return options;
  }

  reconcile::Reconciler reconciler_{sysfs_.root(), kernel_, AtOnce()};
};

TEST_F(ReconcilerResetsTest, WhatIsIdleForTwoPassesIsResetAndTheNextTenantDoesNotWait) {
  const auto before = World();
  AddAndDel(Of("red"));
  EXPECT_EQ(Pass(), "") << "its pod may be started again";
  EXPECT_EQ(Pass(), "reset " + Bdf(0) + ": pod red/train had it\n");
  EXPECT_EQ(Rebinds(), 1);
  EXPECT_FALSE(HasTenant());
  EXPECT_EQ(ChangedSince(before), "");
  AddAndDel(Of("blue"));
  EXPECT_EQ(Rebinds(), 1) << "ADD had nothing to reset";
}

TEST_F(ReconcilerResetsTest, ADeviceHasToBeIdleForAMinute) {
  reconcile::Reconciler reconciler(sysfs_.root(), kernel_);
  AddAndDel(Of("red"));
  const auto begin = reconcile::Reconciler::Clock::now();
  for (int second = 0; second < 60; second += 10)
    EXPECT_EQ(ListActions(reconciler.Run(begin + std::chrono::seconds(second))), "") << second;
  EXPECT_EQ(ListActions(reconciler.Run(begin + std::chrono::seconds(60))),
            "reset " + Bdf(0) + ": pod red/train had it\n");
}

// A device whose pod restarts between two passes is not idle.
TEST_F(ReconcilerResetsTest, EachTenantIsIdleForItself) {
  AddAndDel(Of("red"));
  EXPECT_EQ(Pass(), "");
  const Call again = Of("red");
  ASSERT_TRUE(Add(again));
  ExpectIdle(3);
  ASSERT_TRUE(Del(again));
  EXPECT_EQ(Pass(), "");
  EXPECT_EQ(Pass(), "reset " + Bdf(0) + ": pod red/train had it\n");
}

TEST_F(ReconcilerResetsTest, WhatKubeletHasGivenOutIsNotIdle) {
  AddAndDel(Of("red"));
  WriteCheckpoint({{"uid-1", "main", "a.io/roce", {Bdf(0)}}});
  ExpectIdle(3);
  WriteFileAt(Path(kCheckpoint), "{");
  for (int pass = 0; pass < 3; ++pass)
    EXPECT_NE(Pass().find("checkpoint cannot be read!"), std::string::npos);
  EXPECT_EQ(Rebinds(), 0);
  WriteCheckpoint({});
  EXPECT_EQ(Pass(), "");
  EXPECT_EQ(Pass(), "reset " + Bdf(0) + ": pod red/train had it\n");
}

TEST_F(ReconcilerResetsTest, NotAgainstThePolicyAndNotWithoutOne) {
  const std::string fabric = File("/etc/railhead/fabric.json");
  auto never = nlohmann::json::parse(fabric);
  never["policy"]["reset"] = "never";
  AddAndDel(Of("red"));
  for (const std::string& text : {never.dump(), std::string("{")}) {
    WriteFileAt(Path("/etc/railhead/fabric.json"), text);
    ExpectIdle(3);
  }
  WriteFileAt(Path("/etc/railhead/fabric.json"), fabric);
  EXPECT_EQ(Pass(), "");
  EXPECT_EQ(Pass(), "reset " + Bdf(0) + ": pod red/train had it\n");
}

TEST_F(ReconcilerResetsTest, WhatAnotherCallHasLockedIsLeftToIt) {
  AddAndDel(Of("red"));
  {
    const auto busy = FileLock::Acquire(paths::Lock(sysfs_.root(), Bdf(0)), std::chrono::seconds(0));
    ASSERT_TRUE(busy);
    ExpectIdle(3);
  }
  EXPECT_EQ(Pass(), "reset " + Bdf(0) + ": pod red/train had it\n");
}

// The reconciler tries once. Later an ADD decides what a refusal means for its pod.
TEST_F(ReconcilerResetsTest, WhatCannotBeResetIsLeftToTheNextAdd) {
  AddAndDel(Of("red"));
  kernel_.FailEvery("RebindDriver", EBUSY);
  ASSERT_EQ(Pass(), "");
  for (int pass = 0; pass < 3; ++pass) EXPECT_EQ(Pass(), "");
  EXPECT_EQ(Rebinds(), 1);
  EXPECT_TRUE(HasTenant());
  kernel_.StopFailing();
  AddAndDel(Of("blue"));
  EXPECT_EQ(Rebinds(), 2);
}

// --reconcile-once cannot know how long a device has been idle.
TEST_F(ReconcilerResetsTest, NotByASinglePass) {
  AddAndDel(Of("red"));
  EXPECT_EQ(Did(), "");
  EXPECT_EQ(Did(), "");
  EXPECT_TRUE(HasTenant());
}

// Killed anywhere: the next pass or ADD completes the reset, and the device is as it was.
TEST_F(ReconcilerResetsTest, AResetThatIsKilledAnywhereIsCompleted) {
  const auto before = World();
  int nth = 0;
  for (bool killed = true; killed;) {
    SCOPED_TRACE("call " + std::to_string(++nth));
    AddAndDel(Of("red"));
    killed = KillPass(nth, 2, AtOnce());
    if (nth % 2 == 0) (void)Did();
    if (nth % 2 == 0) {
      ASSERT_EQ(ChangedSince(before), "");
    }
    const Call next = Of("blue");
    const auto added = Add(next);
    ASSERT_TRUE(added) << Describe(added.error());
    EXPECT_TRUE(Check(next));
    ASSERT_TRUE(Del(next));
    ASSERT_EQ(ChangedSince(before), "");
  }
  EXPECT_GT(nth, 8);
}

}  // namespace
}  // namespace railhead::testing

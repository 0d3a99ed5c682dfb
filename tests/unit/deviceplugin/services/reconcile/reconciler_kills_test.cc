// ADDs, DELs and passes that are killed at every call of the kernel, and passes that are refused there.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "tests/support/daemon/reconciler_fixture.h"

namespace railhead::testing {
namespace {

using ReconcilerKillsTest = ReconcilerFixture;

// Whatever the ADD had done, the node is as before it.
TEST_F(ReconcilerKillsTest, AnAddKilledAtEveryCallIsRestored) {
  const Call call = AllRails();
  const auto before = World();
  const int calls = CountAdd(call, 85);
  ASSERT_GT(calls, 30);
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    ASSERT_TRUE(Kill(call, nth));
    const bool had_entry = IsThere(EntryOf(call));
    const std::string did = Did();
    ASSERT_EQ(ChangedSince(before), "") << kernel_.Log();
    EXPECT_EQ(did.find("attachment c1/rails@net1: its ADD was killed") != std::string::npos, had_entry)
        << did;
    ASSERT_EQ(HeldAddresses(), "");
    ASSERT_EQ(Did(), "") << "the second pass finds nothing";
  }
}

TEST_F(ReconcilerKillsTest, ADelKilledAtEveryCallIsCompletedWhenTheNamespaceIsGone) {
  const auto before = World();
  const int calls = CountDel(AllRails(), 36);
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    Call call = AllRails();
    call.netns = AddTo("pod-" + std::to_string(nth), call);
    call.command = "DEL";
    ASSERT_TRUE(Kill(call, nth));
    kernel_.RemoveNamespace(call.netns);
    (void)Did();
    ASSERT_EQ(ChangedSince(before), "") << kernel_.Log();
    ASSERT_EQ(HeldAddresses(), "");
  }
}

// A pass that is killed, or refused by the kernel, at every one of its calls.
TEST_F(ReconcilerKillsTest, APassKilledAtEveryCallIsCompletedByTheNext) {
  const auto before = World();
  const auto prepare = [&](int nth) {
    const std::string pod = AddTo("pod-" + std::to_string(nth), AllRails());
    EXPECT_TRUE(Kill({.network = "one", .container = "c2", .config = Usual(1)}, 15));
    kernel_.RemoveNamespace(pod);
  };
  prepare(0);
  const int first = kernel_.calls();
  (void)Did();
  const int calls = kernel_.calls() - first;
  ASSERT_GT(calls, 20);
  ASSERT_EQ(ChangedSince(before), "");
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    prepare(nth);
    ASSERT_TRUE(KillPass(nth));
    (void)Did();
    ASSERT_EQ(ChangedSince(before), "") << kernel_.Log();
    ASSERT_EQ(HeldAddresses(), "");
  }
}

TEST_F(ReconcilerKillsTest, APassRefusedAtEveryCallSaysSoAndTheNextCompletes) {
  const auto before = World();
  int failures = 0;
  for (int nth = 1;; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    const std::string pod = AddTo("pod-" + std::to_string(nth), AllRails());
    kernel_.RemoveNamespace(pod);
    const int first = kernel_.calls();
    kernel_.FailCall(nth, EIO);
    const auto report = Once();
    const bool reached = kernel_.calls() - first >= nth;
    kernel_.StopFailing();
    if (report.Failed()) ++failures;
    if (!report.Failed()) {
      ASSERT_EQ(ChangedSince(before), "") << "it said that all is well";
    }
    (void)Did();
    ASSERT_EQ(ChangedSince(before), "") << kernel_.Log();
    if (!reached) break;
  }
  EXPECT_GT(failures, 10);
}

}  // namespace
}  // namespace railhead::testing

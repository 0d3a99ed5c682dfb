// DEL that fails, or is killed, at every call of the kernel, while it puts settings back: on the fake kernel.
#include <cerrno>

#include "tests/support/fake_kernel/random_settings.h"
#include "tests/unit/cni/attachment/restore_fixture.h"

namespace railhead::testing {
namespace {

// How the pod leaves its NIC.
enum class Left { kSettings, kHeldProgram };

template <typename Fixture>
class RestoreFaultsTest : public Fixture {
 protected:
  void Pollute(Left left) {
    std::mt19937 random(7);
    for (const DeviceField& field : DeviceFields()) this->Change(field, random);
    if (left == Left::kSettings) return;
    this->Setting("xdp.driver") = "77";
    this->Nic().linked_programs = {"77"};
  }

  int CountDelCalls(Left left) {
    EXPECT_TRUE(this->Add(this->call_));
    Pollute(left);
    const int first = this->kernel_.calls();
    EXPECT_TRUE(this->Del(this->call_));
    return this->kernel_.calls() - first;
  }

  // `spoil`: what happens to the DEL at its nth call.
  template <typename Spoil>
  void Sweep(Left left, Spoil&& spoil) {
    const auto before = this->World();
    const int calls = CountDelCalls(left);
    ASSERT_EQ(this->ChangedSince(before), "");
    ASSERT_GT(calls, least_calls_);
    for (int nth = 1; nth <= calls; ++nth) {
      SCOPED_TRACE("call " + std::to_string(nth));
      ASSERT_TRUE(this->Add(this->call_));
      Pollute(left);
      spoil(nth);
      this->kernel_.StopFailing();
      const auto deleted = this->Del(this->call_);
      ASSERT_TRUE(deleted) << Describe(deleted.error()) << "\n" << this->kernel_.Log();
      ASSERT_EQ(this->ChangedSince(before), "") << this->kernel_.Log();
    }
  }

  int least_calls_ = 60;

  void KillEverywhere(Left left) {
    Call del = this->call_;
    del.command = "DEL";
    Sweep(left, [&](int nth) { ASSERT_TRUE(this->Kill(del, nth)); });
  }
  void FailEverywhere(Left left, FakeKernel::Fault fault) {
    Sweep(left, [&](int nth) {
      this->kernel_.FailCall(nth, EIO, fault);
      (void)this->Del(this->call_);
    });
  }
};

using AnyDriverTest = RestoreFaultsTest<RestoreFixture>;

TEST_F(AnyDriverTest, KilledAtEveryCall) {
  KillEverywhere(Left::kSettings);
}
TEST_F(AnyDriverTest, KilledAtEveryCallOfARebind) {
  KillEverywhere(Left::kHeldProgram);
}
TEST_F(AnyDriverTest, RefusedAtEveryCall) {
  FailEverywhere(Left::kSettings, FakeKernel::Fault::kRefused);
}
TEST_F(AnyDriverTest, PartlyRefusedAtEveryCall) {
  FailEverywhere(Left::kSettings, FakeKernel::Fault::kPartly);
}
TEST_F(AnyDriverTest, RefusedAtEveryCallOfARebind) {
  FailEverywhere(Left::kHeldProgram, FakeKernel::Fault::kRefused);
}

// After the kill the pod's namespace goes.
TEST_F(AnyDriverTest, KilledAtEveryCallThenNamespaceGone) {
  const int calls = CountDelCalls(Left::kHeldProgram);
  kernel_.RemoveNamespace(pod_);
  const auto before = World();
  ASSERT_GT(calls, 60);
  Call del = call_;
  del.command = "DEL";
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    pod_ = MakePod("pod1");
    ASSERT_TRUE(Add(call_));
    Pollute(Left::kHeldProgram);
    ASSERT_TRUE(Kill(del, nth));
    kernel_.RemoveNamespace(pod_);
    const auto deleted = Del(call_);
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    ASSERT_EQ(ChangedSince(before), "") << kernel_.Log();
  }
}

using IgbvfDriverTest = RestoreFaultsTest<RestoreIgbvfFixture>;

TEST_F(IgbvfDriverTest, KilledAtEveryCallOfARebind) {
  KillEverywhere(Left::kHeldProgram);
}

// The PF has given the VF another MAC than its driver knows yet, and the driver keeps its own.
TEST_F(IgbvfDriverTest, TheMacOutlivesARebind) {
  VfChange change;
  change.mac = MacAddress::Parse("02:bb:00:00:00:01");
  ASSERT_EQ(kernel_.state().SetVf(*kernel_.state().Function("0000:43:00.0"), 0, change), 0);
  ASSERT_NE(Nic().link.mac, *change.mac);
  KillEverywhere(Left::kHeldProgram);
  FailEverywhere(Left::kHeldProgram, FakeKernel::Fault::kRefused);
}

TEST_F(IgbvfDriverTest, WithAMacOfTheConfiguration) {
  call_.config += R"(,"mac":"02:aa:00:00:00:01")";
  least_calls_ = 20;  // the driver is bound anew for the MAC, and nothing of the pod is left then
  KillEverywhere(Left::kHeldProgram);
  KillEverywhere(Left::kSettings);
}

}  // namespace
}  // namespace railhead::testing

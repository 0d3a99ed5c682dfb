// All devices or none: an ADD of several that fails, or is killed, at every call.
#include <cerrno>

#include "tests/support/plugin/rails_fixture.h"

namespace railhead::testing {
namespace {

class PluginRailsFaultsTest : public RailsFixture {
 protected:
  [[nodiscard]] int VfsOfEach() const override { return 1; }  // every interface costs time at every call

  // Two devices are enough to be between them.
  [[nodiscard]] Call Pair() const {
    return {.network = "rails",
            .config = Devices({Bdf(0), Bdf(1)}) + "," + IpamForAll() + R"(,"mtu":4200,"alias":"of the pod")"};
  }
};

TEST_F(PluginRailsFaultsTest, AddRefusedAtEveryCall) {
  FailAddEverywhere(AllRails(), FakeKernel::Fault::kRefused, 85);
}

TEST_F(PluginRailsFaultsTest, AddRefusedPartlyAtEveryCall) {
  FailAddEverywhere(Pair(), FakeKernel::Fault::kPartly, 60);
}

TEST_F(PluginRailsFaultsTest, DelRefusedAtEveryCall) {
  FailDelEverywhere(Pair(), FakeKernel::Fault::kRefused, 28);
}

TEST_F(PluginRailsFaultsTest, ExclusiveModeRefusedAtEveryCall) {
  kernel_.SetRdmaMode(RdmaNetnsMode::kExclusive);
  kernel_.Sync();
  FailAddEverywhere(Pair(), FakeKernel::Fault::kRefused, 66);
}

TEST_F(PluginRailsFaultsTest, AddKilledAtEveryCallThenDel) {
  const auto before = World();
  const int calls = CountAdd(Pair(), 60);
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    ASSERT_TRUE(Kill(Pair(), nth));
    const auto deleted = Del(Pair());
    ASSERT_TRUE(deleted) << Describe(deleted.error()) << "\n" << kernel_.Log();
    ASSERT_EQ(ChangedSince(before), "") << kernel_.Log();
  }
}

TEST_F(PluginRailsFaultsTest, DelKilledAtEveryCallThenDel) {
  const auto before = World();
  const int calls = CountDel(Pair(), 28);
  Call del = Pair();
  del.command = "DEL";
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    ASSERT_TRUE(Add(Pair()));
    ASSERT_TRUE(Kill(del, nth));
    const auto deleted = Del(Pair());
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    ASSERT_EQ(ChangedSince(before), "");
  }
}

// The pod never comes back, and another one gets one of its devices: with that, all go
// home.
TEST_F(PluginRailsFaultsTest, AddKilledAtEveryCallThenAddOfAnotherPod) {
  const std::string other = MakePod("pod2");
  const Call next{.container = "c2",
                  .netns = other,
                  .config = R"("deviceID":")" + Bdf(1) + R"(","ipam":{},"handoff":"off")"};
  const auto before = World();
  const int calls = CountAdd(Pair(), 60);
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    ASSERT_TRUE(Kill(Pair(), nth));
    const auto added = Add(next);
    ASSERT_TRUE(added) << Describe(added.error()) << "\n" << kernel_.Log();
    ASSERT_TRUE(Del(Pair())) << "of the killed one: it must not touch the device";
    const auto checked = Check(next);
    EXPECT_TRUE(checked) << Describe(checked.error());
    ASSERT_TRUE(Del(next));
    ASSERT_EQ(ChangedSince(before), "") << kernel_.Log();
  }
}

TEST_F(PluginRailsFaultsTest, AddKilledAtEveryCallThenNamespaceGone) {
  const int calls = CountAdd(Pair(), 60);
  const auto without_pod = [this] {
    kernel_.RemoveNamespace(pod_);
    return World();
  };
  const auto before = without_pod();
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    pod_ = MakePod("pod1");
    ASSERT_TRUE(Kill(Pair(), nth));
    (void)without_pod();
    const auto deleted = Del(Pair());
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    ASSERT_EQ(ChangedSince(before), "");
  }
}

}  // namespace
}  // namespace railhead::testing

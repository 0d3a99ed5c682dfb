// One attachment from ADD to DEL, and its restore after a kill, on the oldest kernels that Railhead is for.
#include <gtest/gtest.h>

#include "tests/support/daemon/reconciler_fixture.h"

namespace railhead::testing {
namespace {

class OldKernelTest : public ReconcilerFixture, public ::testing::WithParamInterface<FakeRelease> {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    for (FakeNetdev& netdev : kernel_.state().netdevs) {
      if (!netdev.bdf.empty()) netdev.device = AllSettings();
    }
    kernel_.SetRelease(GetParam());
  }
};

TEST_P(OldKernelTest, LinksHaveNoNewSettings) {
  const auto route = kernel_.OpenRoute(kernel_.HostNetns().value()).value();
  const auto pf0 = route->FindLink("pf0").value();
  ASSERT_TRUE(pf0);
  EXPECT_EQ(route->AddAltName(pf0->index, "other").has_value(), GetParam() >= kAltNames);
  const auto devices = kernel_.OpenDevices(kernel_.HostNetns().value()).value();
  const DeviceState state = devices->Read(*pf0).value();
  EXPECT_EQ(state.Find("tcx.ingress"), nullptr);
  EXPECT_EQ(state.Find("features.wanted") != nullptr, GetParam() >= FakeRelease(5, 7));
}

TEST_P(OldKernelTest, AddCheckDel) {
  const auto before = World();
  for (const Call& call : {AllRails(), Call{.network = "one", .container = "c2", .config = Usual(1)}}) {
    const auto added = Add(call);
    ASSERT_TRUE(added) << Describe(added.error());
    const auto checked = Check(call);
    EXPECT_TRUE(checked) << Describe(checked.error());
    EXPECT_EQ(Did(), "") << "the attachment is well";
    const auto deleted = Del(call);
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    EXPECT_EQ(ChangedSince(before), "") << kernel_.Log();
  }
  EXPECT_EQ(HeldAddresses(), "");
}

TEST_P(OldKernelTest, DelAfterThePodsNamespace) {
  const auto before = World();
  Call call = AllRails();
  call.netns = MakePod("pod2");
  ASSERT_TRUE(Add(call));
  kernel_.RemoveNamespace(call.netns);
  const auto deleted = Del(call);
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(ChangedSince(before), "") << kernel_.Log();
}

TEST_P(OldKernelTest, AnAddKilledAtEveryCallIsRestored) {
  const Call call = AllRails();
  const auto before = World();
  int nth = 1;
  for (; Kill(call, nth); ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    (void)Did();
    ASSERT_EQ(ChangedSince(before), "") << kernel_.Log();
    ASSERT_EQ(HeldAddresses(), "");
  }
  EXPECT_GT(nth, 30);
}

TEST_P(OldKernelTest, AltNamesThatTheKernelLacksLeaveNothing) {
  const auto before = World();
  const Call call{.container = "c3", .config = Usual(1) + R"(,"altNames":["roce0"])"};
  const auto added = Add(call);
  EXPECT_EQ(added.has_value(), GetParam() >= kAltNames);
  if (!added) EXPECT_NE(added.error().message.find("roce0"), std::string::npos) << Describe(added.error());
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(ChangedSince(before), "") << kernel_.Log();
}

INSTANTIATE_TEST_SUITE_P(Of, OldKernelTest, ::testing::Values(FakeRelease{5, 4}, FakeRelease{5, 10}),
                         [](const auto& of) {
                           return "Linux" + std::to_string(of.param.first) + "_" +
                                  std::to_string(of.param.second);
                         });

}  // namespace
}  // namespace railhead::testing

// Drift between the pods' NCCL configuration and the current state, on a fake kernel.
#include "deviceplugin/services/reconcile/drift_watch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cni/attachment/device_locks.h"
#include "deviceplugin/tools/railctl/nccl_configs.h"
#include "tests/support/daemon/reconciler_fixture.h"

namespace railhead::testing {
namespace {

class DriftWatchTest : public ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    const auto added = Add(AllRails());
    ASSERT_TRUE(added) << Describe(added.error());
    kernel_.ClearLog();
  }
  void PortDown(bool down) {
    kernel_.state().Rdma("mlx5_pf1v0")->port_down = down;
    kernel_.Sync();
  }
  // The one attachment's drift. "" without one.
  std::string Drift() {
    const reconcile::DriftReport report = watch_.Check();
    EXPECT_TRUE(report.problems.empty()) << Describe(report.problems.front());
    EXPECT_EQ(report.watched, 1U);
    return report.drifted.empty() ? "" : report.drifted.begin()->second;
  }

  const AttachmentKey key_{"rails", "c1", "net1"};
  reconcile::DriftWatch watch_{sysfs_.root(), kernel_};
};

TEST_F(DriftWatchTest, WhenAllIsWellNothingIsTouchedAndNoLockTaken) {
  Remove("/run/railhead/locks");
  const auto before = World();
  EXPECT_EQ(Drift(), "");
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_FALSE(IsThere("/run/railhead/locks")) << "a lock was made to be taken";
}

TEST_F(DriftWatchTest, APortThatIsDownIsReportedOnceAndItsEnd) {
  PortDown(true);
  reconcile::DriftReport report = watch_.Check();
  ASSERT_TRUE(report.began.contains(key_));
  EXPECT_NE(report.began[key_].find("mlx5_pf1v0: port 1 is not ACTIVE"), std::string::npos)
      << report.began[key_];
  report = watch_.Check();
  EXPECT_TRUE(report.began.empty());
  EXPECT_TRUE(report.drifted.contains(key_));
  PortDown(false);
  report = watch_.Check();
  EXPECT_TRUE(report.drifted.empty());
  EXPECT_EQ(report.over, std::vector<AttachmentKey>{key_});
  EXPECT_TRUE(watch_.Check().over.empty());
}

// Its GID has another index from then on.
TEST_F(DriftWatchTest, AnAddressThatCameAgain) {
  FakeNetdev* rail0 = kernel_.state().Find(pod_, "rail0");
  ASSERT_NE(rail0, nullptr);
  const IpPrefix own = rail0->addresses.front();
  ASSERT_EQ(kernel_.state().DeleteAddress(*rail0, own), 0);
  EXPECT_NE(Drift().find(own.address.ToString()), std::string::npos);
  ASSERT_EQ(kernel_.state().AddAddress(*rail0, *IpPrefix::Parse("192.0.2.1/24")), 0);
  ASSERT_EQ(kernel_.state().AddAddress(*rail0, own), 0);
  const std::string drift = Drift();
  EXPECT_NE(drift.find("GID index of " + own.address.ToString()), std::string::npos) << drift;
}

TEST_F(DriftWatchTest, AnInterfaceThatWasTaken) {
  kernel_.state().Find(pod_, "rail2")->link.name = "else";
  EXPECT_NE(Drift().find("interface rail2 is missing in the pod"), std::string::npos);
}

TEST_F(DriftWatchTest, FilesThatLaterContainersWouldGet) {
  Remove("/run/railhead/nccl/c1/nccl.conf");
  EXPECT_NE(Drift().find("nccl.conf is missing"), std::string::npos);
}

TEST_F(DriftWatchTest, WhoIsAtWorkOnItIsNoDrift) {
  PortDown(true);
  const auto locks = attachment::DeviceLocks::Acquire(sysfs_.root(), {Bdf(1)}, std::chrono::milliseconds(0));
  ASSERT_TRUE(locks);
  EXPECT_EQ(Drift(), "");
}

TEST_F(DriftWatchTest, WhatHasNoPodAnyMoreIsLeftToTheReconciler) {
  kernel_.RemoveNamespace(pod_);
  EXPECT_EQ(Drift(), "");
}

TEST_F(DriftWatchTest, AttachmentsWithoutNcclConfigAreNotWatched) {
  ASSERT_TRUE(Del(AllRails()));
  ASSERT_TRUE(Add({.config = Usual(1) + R"(,"ncclConfig":"off")"}));
  EXPECT_EQ(watch_.Check().watched, 0U);
}

TEST_F(DriftWatchTest, AVerdictForPeople) {
  const auto configs = railctl::FindNcclConfigs(sysfs_.root(), "c");
  ASSERT_TRUE(configs);
  ASSERT_EQ(configs->size(), 1U);
  EXPECT_NE(configs->front().nccl_conf.find("NCCL_IB_HCA=="), std::string::npos);
  EXPECT_EQ(railctl::FindNcclConfigs(sysfs_.root(), "d").error().code, ErrorCode::kNotFound);
}

TEST(OverridesTest, WhatDiffersFromTheFile) {
  const std::string conf = "NCCL_IB_HCA==mlx5_4,mlx5_9\nNCCL_IB_GID_INDEX=3\nNCCL_IB_TC=106\n";
  std::string environ = "PATH=/bin|NCCL_IB_GID_INDEX=1|NCCL_IB_TC=106|NCCL_IB_HCA=mlx5|NCCL_DEBUG=INFO|";
  std::replace(environ.begin(), environ.end(), '|', '\0');
  const auto overrides = railctl::OverridesIn(7, environ, {"nccl.conf", conf});
  ASSERT_EQ(overrides.size(), 2U);
  EXPECT_EQ(overrides[0].variable, "NCCL_IB_HCA");
  EXPECT_EQ(overrides[0].value, "mlx5");
  EXPECT_EQ(overrides[0].configured, "=mlx5_4,mlx5_9");
  EXPECT_EQ(overrides[1].variable, "NCCL_IB_GID_INDEX");
  EXPECT_EQ(overrides[1].pid, 7);
  EXPECT_EQ(overrides[1].where, "nccl.conf");
}

}  // namespace
}  // namespace railhead::testing

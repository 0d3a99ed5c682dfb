// Runs that were killed, or stopped on request, and how the next run continues.
#include <atomic>

#include "cni/attachment/device_locks.h"
#include "cni/state/paths.h"
#include "deviceplugin/services/provision/apply_watch.h"
#include "deviceplugin/services/provision/report.h"
#include "netns/base/state_folder.h"
#include "tests/unit/deviceplugin/services/provision/fixture.h"

namespace railhead::testing {
namespace {

class InterruptedTest : public ProvisionFixture {
 protected:
  const std::string mark_ = std::string("/run/railhead/provision/") + kPf0;

  // The state after a run that was killed once the VFs were gone. There were `vfs` before.
  void KilledWithoutVfs(int vfs) {
    sysfs_.Write(mark_, "1 " + std::to_string(vfs) + "\n");
    control_.AddPf(kPf0, false);
  }

  provision::VfsOutcome ApplyUntil(const std::string& provision, const provision::ApplyWatch& watch) {
    auto outcome =
        ApplyVfs(root_, kernel_, control_, Of(provision), std::nullopt, provision::kProvisionLimit, watch);
    EXPECT_TRUE(outcome) << Describe(outcome.error());
    return outcome.value_or(provision::VfsOutcome{});
  }
};

TEST_F(InterruptedTest, TheMarkHasTheNumberOfBefore) {
  ASSERT_FALSE(Apply0(R"({"vfs": 3})").error);
  std::string mark;
  control_.before = [&](const std::string& call) {
    if (call.rfind("SetVfCount", 0) == 0) mark = File(mark_);
  };
  ASSERT_FALSE(Apply0(R"({"vfs": 2})").error);
  EXPECT_EQ(mark, "1 3\n");
  EXPECT_EQ(File(mark_), "(none)");
}

TEST_F(InterruptedTest, WithoutANumberStatedItIsTheOneOfBefore) {
  KilledWithoutVfs(3);
  const provision::VfsPlan plan = Plan("{}");
  EXPECT_NE(PlanAsText(plan).find("make 3 VFs"), std::string::npos) << PlanAsText(plan);
  std::string mark;
  control_.before = [&](const std::string& call) {
    if (call.rfind("SetVfCount", 0) == 0) mark = File(mark_);
  };
  ASSERT_FALSE(Apply0("{}").error);
  EXPECT_EQ(mark, "1 3\n") << "killed a second time, it would still be known";
  EXPECT_EQ(VfsOf(kPf0).size(), 3U);
  EXPECT_EQ(Autoprobe(kPf0), "1");
  EXPECT_EQ(File(mark_), "(none)");
}

TEST_F(InterruptedTest, ANumberThatIsStatedCounts) {
  KilledWithoutVfs(3);
  ASSERT_FALSE(Apply0(R"({"vfs": 5})").error);
  EXPECT_EQ(VfsOf(kPf0).size(), 5U);
}

TEST_F(InterruptedTest, AFailureThatIsTakenBackKeepsTheMark) {
  KilledWithoutVfs(3);
  control_.Fail("SetVfCount", EIO, " 3");
  ASSERT_TRUE(Apply0("{}").error);
  EXPECT_EQ(File(mark_), "1 3\n");
  ASSERT_FALSE(Apply0("{}").error);
  EXPECT_EQ(VfsOf(kPf0).size(), 3U);
}

TEST_F(InterruptedTest, AMarkWithoutNumberOrWithAWrongOneLeavesWhatIsThere) {
  for (const char* mark : {"1\n", "1 65\n", "1 -1\n", "1 x\n", "", "1 99999999999999999999\n"}) {
    SCOPED_TRACE(mark);
    ASSERT_FALSE(Apply0(R"({"vfs": 2})").error);
    sysfs_.Write(mark_, mark);
    const provision::PfOutcome outcome = Apply0("{}");
    EXPECT_FALSE(outcome.error) << Describe(*outcome.error);
    EXPECT_TRUE(outcome.plan.make);
    EXPECT_EQ(VfsOf(kPf0).size(), 2U);
    EXPECT_EQ(Autoprobe(kPf0), "1");
  }
}

TEST_F(InterruptedTest, AStopBetweenTwoVfsLeavesTheMarkForTheNextRun) {
  std::atomic<bool> stop{false};
  control_.before = [&](const std::string& call) {
    if (call.rfind("Probe", 0) == 0) stop = true;
  };
  const provision::VfsOutcome outcome = ApplyUntil(R"({"vfs": 3})", {nullptr, &stop});
  ASSERT_EQ(outcome.pfs.size(), 1U) << "the second PF is not begun";
  ASSERT_TRUE(outcome.pfs[0].error);
  EXPECT_EQ(outcome.pfs[0].error->code, ErrorCode::kUnavailable) << Describe(*outcome.pfs[0].error);
  EXPECT_EQ(File(mark_), "1 0\n");
  EXPECT_EQ(Autoprobe(kPf0), "1");
  const auto vfs = VfsOf(kPf0);
  ASSERT_EQ(vfs.size(), 3U);
  EXPECT_NE(DriverOf(vfs[0]), "") << "the VF that was begun is finished";
  EXPECT_EQ(DriverOf(vfs[1]), "");
  control_.before = nullptr;
  EXPECT_FALSE(Apply(R"({"vfs": 3})").Failed());
  for (const char* pf : {kPf0, kPf1}) {
    for (const std::string& vf : VfsOf(pf)) EXPECT_EQ(DriverOf(vf), "mlx5_core");
  }
  EXPECT_EQ(File(mark_), "(none)");
}

// A stop after the last VF does not make the next run do anything again.
TEST_F(InterruptedTest, AStopAfterTheLastVfLeavesNoMark) {
  std::atomic<bool> stop{false};
  int probed = 0;
  control_.before = [&](const std::string& call) {
    if (call.rfind("Probe", 0) == 0 && ++probed == 3) stop = true;
  };
  const provision::VfsOutcome outcome = ApplyUntil(R"({"vfs": 3})", {nullptr, &stop});
  ASSERT_EQ(outcome.pfs.size(), 1U);
  EXPECT_FALSE(outcome.pfs[0].error) << Describe(*outcome.pfs[0].error);
  EXPECT_EQ(File(mark_), "(none)");
}

// A failed step is undone completely even after a stop.
TEST_F(InterruptedTest, AStopDoesNotCutAnUndoShort) {
  ASSERT_FALSE(Apply0(R"({"vfs": 2})").error);
  std::atomic<bool> stop{false};
  control_.before = [&](const std::string& call) {
    if (call.rfind("SetVfCount", 0) == 0) stop = true;
  };
  control_.Fail("SetVfCount", EIO, " 3");
  const provision::VfsOutcome outcome = ApplyUntil(R"({"vfs": 3})", {nullptr, &stop});
  ASSERT_EQ(outcome.pfs.size(), 1U);
  EXPECT_EQ(outcome.pfs[0].error->sys_errno, EIO) << Describe(*outcome.pfs[0].error);
  const auto vfs = VfsOf(kPf0);
  ASSERT_EQ(vfs.size(), 2U);
  for (const std::string& vf : vfs) EXPECT_EQ(DriverOf(vf), "mlx5_core");
  EXPECT_EQ(File(mark_), "(none)");
}

TEST_F(InterruptedTest, AStopIsHeardWhileLocksAreWaitedFor) {
  std::atomic<bool> stop{false};
  std::vector<std::string> said;
  const provision::ApplyWatch watch{[&](const std::string& what) {
                                      said.push_back(what);
                                      if (what.find("provisioning") != std::string::npos) stop = true;
                                    },
                                    &stop};
  {
    const auto device = attachment::DeviceLocks::Acquire(root_, {kPf0}, std::chrono::seconds(0));
    ASSERT_TRUE(device);
    const provision::VfsOutcome outcome = ApplyUntil(R"({"vfs": 3})", watch);
    ASSERT_EQ(outcome.pfs.size(), 1U);
    EXPECT_EQ(outcome.pfs[0].error->code, ErrorCode::kUnavailable) << Describe(*outcome.pfs[0].error);
    EXPECT_EQ(said.back(), std::string("provisioning PF pf0 (") + kPf0 + ")");
  }
  const auto other = FileLock::Acquire(paths::Lock(root_, "provision"), std::chrono::seconds(0));
  ASSERT_TRUE(other);
  const provision::VfsOutcome outcome = ApplyUntil(R"({"vfs": 3})", watch);
  EXPECT_TRUE(outcome.pfs.empty());
  EXPECT_NE(said.back().find("waiting for another"), std::string::npos) << said.back();
  EXPECT_TRUE(control_.log().empty());
}

}  // namespace
}  // namespace railhead::testing

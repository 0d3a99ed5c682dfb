// Makes VFs as the settings say: order, MACs, drivers, MTU. A second run changes nothing, and a failure in
// the middle is undone.
#include <cerrno>
#include <chrono>

#include "deviceplugin/services/provision/derived_vf_mac.h"
#include "deviceplugin/services/provision/report.h"
#include "netns/base/text.h"
#include "tests/unit/deviceplugin/services/provision/fixture.h"

namespace railhead::testing {
namespace {

class ApplyTest : public ProvisionFixture {
 protected:
  static constexpr const char* kFour = R"({"vfs": 4, "mtu": 9000, "mac": "derived"})";

  std::string Derived(const std::string& pf, int vf) {
    return provision::DerivedVfMac(NetdevOf(pf)->link.permanent_mac, vf).ToString();
  }
  // What apply did, without the PF's address.
  std::string Log() {
    std::string log = Join(control_.log(), "\n");
    const std::string pf = std::string(kPf0) + " ";
    for (auto at = log.find(pf); at != std::string::npos; at = log.find(pf)) log.erase(at, pf.size());
    return log;
  }
  // The node is as it was before.
  void ExpectUntouched(const std::string& before) {
    EXPECT_EQ(kernel_.Snapshot(), before);
    EXPECT_EQ(Autoprobe(kPf0), "1");
    EXPECT_EQ(File(std::string("/run/railhead/provision/") + kPf0), "(none)");
  }
};

TEST_F(ApplyTest, MakesThemBothRails) {
  const provision::VfsPlan plan = Plan(kFour);
  ASSERT_EQ(plan.pfs.size(), 2U);
  EXPECT_FALSE(plan.NothingToDo());
  EXPECT_FALSE(plan.Refused());
  EXPECT_TRUE(control_.log().empty()) << "a plan touches nothing";
  const provision::VfsOutcome outcome = Apply(kFour);
  EXPECT_FALSE(outcome.Failed()) << OutcomeAsText(outcome);
  for (const char* pf : {kPf0, kPf1}) {
    const auto vfs = VfsOf(pf);
    ASSERT_EQ(vfs.size(), 4U);
    EXPECT_EQ(NetdevOf(pf)->link.mtu, 9000);
    EXPECT_EQ(Autoprobe(pf), "1");
    for (int vf = 0; vf < 4; ++vf) {
      EXPECT_EQ(AdminMac(pf, vf), Derived(pf, vf));
      const FakeNetdev* netdev = NetdevOf(vfs[static_cast<std::size_t>(vf)]);
      ASSERT_NE(netdev, nullptr);
      EXPECT_EQ(netdev->link.mac.ToString(), Derived(pf, vf)) << "bound after its PF was told";
      EXPECT_EQ(netdev->link.mtu, 9000);
    }
  }
}

TEST_F(ApplyTest, AgainChangesNothing) {
  (void)Apply(kFour);
  const std::string before = kernel_.Snapshot();
  const std::size_t calls = control_.log().size();
  EXPECT_TRUE(Plan(kFour).NothingToDo());
  const provision::VfsOutcome again = Apply(kFour);
  EXPECT_FALSE(again.Failed());
  for (const provision::PfOutcome& pf : again.pfs) EXPECT_FALSE(pf.Changed());
  EXPECT_EQ(kernel_.Snapshot(), before);
  EXPECT_EQ(control_.log().size(), calls);
}

// Names and numbers follow the index only if drivers bind in turn, once everything is set.
TEST_F(ApplyTest, DriversAreKeptAwayAndComeInOrder) {
  ASSERT_FALSE(Apply0(R"({"vfs": 3})").error);
  const auto vfs = VfsOf(kPf0);
  EXPECT_EQ(Log(), "SetAutoprobe 0\nSetVfCount 3\nSetAutoprobe 1\nProbe " + vfs[0] + "\nProbe " + vfs[1] +
                       "\nProbe " + vfs[2]);
}

TEST_F(ApplyTest, AnotherCountGoesByZero) {
  ASSERT_FALSE(Apply0(R"({"vfs": 3})").error);
  const provision::PfOutcome outcome = Apply0(R"({"vfs": 2})");
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(Join(StepsOf(outcome.plan), "; "), "remove its 3 VFs; make 2 VFs");
  EXPECT_EQ(VfsOf(kPf0).size(), 2U);
  EXPECT_NE(Log().find("SetVfCount 0\nSetVfCount 2"), std::string::npos) << Log();
}

TEST_F(ApplyTest, NoneAndMax) {
  ASSERT_FALSE(Apply0(R"({"vfs": "max"})").error);
  EXPECT_EQ(VfsOf(kPf0).size(), 64U);
  ASSERT_FALSE(Apply0(R"({"vfs": 0})").error);
  EXPECT_EQ(VfsOf(kPf0).size(), 0U);
  EXPECT_EQ(Autoprobe(kPf0), "1");
}

TEST_F(ApplyTest, AUserSpaceDriver) {
  const char* const settings = R"({"vfs": 2, "driver": "vfio-pci", "mac": "derived", "mtu": 9000})";
  ASSERT_FALSE(Apply0(settings).error);
  for (const std::string& vf : VfsOf(kPf0)) EXPECT_EQ(DriverOf(vf), "vfio-pci");
  EXPECT_EQ(AdminMac(kPf0, 1), Derived(kPf0, 1)) << "the PF alone can tell";
  EXPECT_EQ(Apply0(settings).Changed(), false);
  // And back.
  const provision::PfOutcome back = Apply0(R"({"driver": "mlx5_core", "mac": "derived", "mtu": 9000})");
  EXPECT_FALSE(back.error) << Describe(*back.error);
  EXPECT_FALSE(back.plan.make) << "the VFs stay";
  for (const std::string& vf : VfsOf(kPf0)) {
    EXPECT_EQ(DriverOf(vf), "mlx5_core");
    EXPECT_EQ(NetdevOf(vf)->link.mtu, 9000);
  }
}

TEST_F(ApplyTest, WithoutAutoprobeAndDriverTheyStayUnbound) {
  control_.AddPf(kPf0, false);
  ASSERT_FALSE(Apply0(R"({"vfs": 2, "mac": "derived"})").error);
  for (const std::string& vf : VfsOf(kPf0)) EXPECT_EQ(DriverOf(vf), "");
  EXPECT_EQ(Autoprobe(kPf0), "0");
  EXPECT_EQ(AdminMac(kPf0, 1), Derived(kPf0, 1));
}

TEST_F(ApplyTest, MacsOfVfsThatAreThere) {
  ASSERT_FALSE(Apply0(R"({"vfs": 2, "mtu": 9000})").error);
  const provision::PfOutcome outcome = Apply0(R"({"mac": "derived", "mtu": 9000})");
  EXPECT_FALSE(outcome.error) << Describe(*outcome.error);
  EXPECT_FALSE(outcome.plan.make);
  for (int vf = 0; vf < 2; ++vf) {
    EXPECT_EQ(NetdevOf(VfsOf(kPf0)[static_cast<std::size_t>(vf)])->link.mac.ToString(), Derived(kPf0, vf));
    EXPECT_EQ(NetdevOf(VfsOf(kPf0)[static_cast<std::size_t>(vf)])->link.mtu, 9000)
        << "a driver that is bound begins with 1500";
  }
}

TEST_F(ApplyTest, MtuIsWhatIsAskedForAtLeastAndWhatTheRailNeeds) {
  ASSERT_FALSE(Apply("{}").Failed());
  EXPECT_EQ(NetdevOf(kPf0)->link.mtu, 1500);
  EXPECT_EQ(NetdevOf(kPf1)->link.mtu, 4200) << "what the rail's pods get";
  ASSERT_FALSE(Apply(R"({"mtu": 4000})").Failed());
  EXPECT_EQ(NetdevOf(kPf0)->link.mtu, 4000);
  EXPECT_EQ(NetdevOf(kPf1)->link.mtu, 4200) << "never lowered";
}

TEST_F(ApplyTest, APfThatIsDownComesUp) {
  kernel_.SetUp(kHost, "pf0", false);
  ASSERT_FALSE(Apply0(R"({"vfs": 1})").error);
  EXPECT_TRUE(NetdevOf(kPf0)->link.up);
  kernel_.SetUp(kHost, "pf0", false);
  ASSERT_FALSE(Apply0(R"({"vfs": 0})").error);
  EXPECT_FALSE(NetdevOf(kPf0)->link.up) << "without VFs nobody needs it";
}

TEST_F(ApplyTest, NetdevsMayComeLater) {
  control_.PutOff();
  const provision::PfOutcome outcome = Apply0(kFour);
  EXPECT_FALSE(outcome.error) << Describe(*outcome.error);
  EXPECT_EQ(NetdevOf(VfsOf(kPf0)[3])->link.mac.ToString(), Derived(kPf0, 3));
}

TEST_F(ApplyTest, FailureAtAnyStepBeforeTheDriversTakesAllBack) {
  const std::string before = kernel_.Snapshot();
  const std::pair<const char*, const char*> steps[] = {
      {"SetAutoprobe", " 0"}, {"SetVfCount", " 4"}, {"SetAutoprobe", " 1"}};
  for (const auto& [call, text] : steps) {
    SCOPED_TRACE(std::string(call) + text);
    control_.Fail(call, EIO, text);
    const provision::PfOutcome outcome = Apply0(kFour);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->sys_errno, EIO) << Describe(*outcome.error);
    ExpectUntouched(before);
  }
  for (const auto& [call, text] : {std::pair("SetVf", ""), std::pair("ChangeLink", "")}) {
    SCOPED_TRACE(call);
    kernel_.FailEvery(call, EOPNOTSUPP, text);
    ASSERT_TRUE(Apply0(kFour).error);
    kernel_.StopFailing();
    ExpectUntouched(before);
  }
}

TEST_F(ApplyTest, EveryCallToTheKernelThatFailsLeavesAllOrNothing) {
  const std::string before = kernel_.Snapshot();
  int taken_back = 0;
  for (int nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    kernel_.FailCall(nth, EIO);
    const auto outcome = ApplyVfs(root_, kernel_, control_, Of(kFour), "rail0");
    const bool reached = kernel_.Log().find("(injected)") != std::string::npos;
    kernel_.StopFailing();
    if (!reached) break;
    if (VfsOf(kPf0).empty()) {
      ExpectUntouched(before);
      ++taken_back;
    } else {
      EXPECT_EQ(VfsOf(kPf0).size(), 4U);
      EXPECT_EQ(Autoprobe(kPf0), "1");
    }
    (void)Apply0(R"({"vfs": 0})");
    (void)kernel_.state().Change(*kernel_.state().Find(kHost, "pf0"), {{.mtu = 1500}});
    kernel_.Sync();
  }
  EXPECT_GT(taken_back, 8);
}

TEST_F(ApplyTest, FewerThanAskedForAreNone) {
  control_.MakeAtMost(2);
  const provision::PfOutcome outcome = Apply0(R"({"vfs": 4})");
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code, ErrorCode::kExhausted);
  EXPECT_NE(outcome.error->message.find("made 2 VFs instead of 4"), std::string::npos);
  EXPECT_TRUE(VfsOf(kPf0).empty());
}

TEST_F(ApplyTest, WhatWasThereComesBack) {
  ASSERT_FALSE(Apply0(R"({"vfs": 2, "mac": "derived", "driver": "vfio-pci"})").error);
  const std::string mac = AdminMac(kPf0, 1);
  control_.MakeAtMost(2);
  const provision::PfOutcome outcome = Apply0(R"({"vfs": 4, "mac": "derived", "driver": "mlx5_core"})");
  ASSERT_TRUE(outcome.error);
  ASSERT_EQ(VfsOf(kPf0).size(), 2U);
  EXPECT_EQ(AdminMac(kPf0, 1), mac);
  EXPECT_EQ(DriverOf(VfsOf(kPf0)[1]), "vfio-pci");
  EXPECT_EQ(Autoprobe(kPf0), "1");
}

TEST_F(ApplyTest, AFailedUndoIsReported) {
  control_.MakeAtMost(2);
  control_.Fail("SetVfCount", EIO, " 0", 9);
  const provision::PfOutcome outcome = Apply0(R"({"vfs": 4})");
  ASSERT_TRUE(outcome.error);
  EXPECT_NE(outcome.error->message.find("undoing"), std::string::npos) << Describe(*outcome.error);
  EXPECT_NE(outcome.error->hint.find("by hand"), std::string::npos);
}

TEST_F(ApplyTest, ADriverThatDoesNotTakeOneLeavesTheOthers) {
  control_.Refuse(1);
  const provision::PfOutcome outcome = Apply0(R"({"vfs": 3})");
  ASSERT_TRUE(outcome.error);
  EXPECT_NE(outcome.error->message.find("VF 1"), std::string::npos) << Describe(*outcome.error);
  const auto vfs = VfsOf(kPf0);
  ASSERT_EQ(vfs.size(), 3U);
  EXPECT_NE(NetdevOf(vfs[0]), nullptr);
  EXPECT_NE(NetdevOf(vfs[2]), nullptr);
}

TEST_F(ApplyTest, MacsAreTakenBackTooWhereVfsStay) {
  ASSERT_FALSE(Apply0(R"({"vfs": 3})").error);
  const std::string mac = NetdevOf(VfsOf(kPf0)[0])->link.name;
  kernel_.FailEvery("SetVf", EPERM, "vf 2");
  const provision::PfOutcome outcome = Apply0(R"({"mac": "derived"})");
  kernel_.StopFailing();
  ASSERT_TRUE(outcome.error) << kernel_.Log();
  for (int vf = 0; vf < 3; ++vf) {
    EXPECT_EQ(AdminMac(kPf0, vf), "00:00:00:00:00:00");
    EXPECT_NE(NetdevOf(VfsOf(kPf0)[static_cast<std::size_t>(vf)]), nullptr) << "bound again";
  }
}

// The state after a killed run: VFs without MACs and drivers, autoprobe off, and the run's mark.
TEST_F(ApplyTest, AnInterruptedRunIsBegunAgain) {
  bool killed = false;
  control_.before = [&](const std::string& call) {
    if (killed || call.rfind("Probe", 0) != 0) return;
    killed = true;
    EXPECT_EQ(File(std::string("/run/railhead/provision/") + kPf0), "1 0\n");
  };
  ASSERT_FALSE(Apply0(kFour).error);
  EXPECT_TRUE(killed);
  sysfs_.Write(std::string("/run/railhead/provision/") + kPf0, "1\n");
  control_.AddPf(kPf0, false);
  const provision::VfsPlan plan = Plan(kFour);
  EXPECT_FALSE(plan.NothingToDo());
  EXPECT_NE(PlanAsText(plan).find("begin again"), std::string::npos);
  ASSERT_FALSE(Apply0(kFour).error);
  EXPECT_EQ(Autoprobe(kPf0), "1") << "as it was before the killed run";
  EXPECT_EQ(File(std::string("/run/railhead/provision/") + kPf0), "(none)");
  EXPECT_TRUE(Apply0(kFour).plan.NothingToDo());
}

TEST_F(ApplyTest, OnePfsTroubleIsNotTheOthers) {
  control_.Fail("SetVfCount", EIO, kPf0);
  const provision::VfsOutcome outcome = Apply(kFour);
  ASSERT_EQ(outcome.pfs.size(), 2U);
  EXPECT_TRUE(outcome.pfs[0].error);
  EXPECT_FALSE(outcome.pfs[1].error);
  EXPECT_EQ(VfsOf(kPf1).size(), 4U);
}

// After VFs were made, some get no driver, and udev renames interfaces at the same time.

class SettleTest : public ProvisionFixture {
 protected:
  // Once, when the host is asked for this.
  void RenameAt(const std::string& call, const std::string& ns_link, const std::string& name) {
    kernel_.before = [this, call, ns_link, name](const std::string& begun) {
      if (begun.rfind(call, 0) != 0) return;
      FakeNetdev* netdev = kernel_.state().Find(kHost, ns_link);
      if (netdev == nullptr) return;
      netdev->link.name = name;
      ++renamed_;
      kernel_.Sync();
    };
  }

  int renamed_ = 0;
};

TEST_F(SettleTest, AVfThatNoDriverTakesIsNotWaitedForLong) {
  control_.Refuse(1);
  const auto begin = std::chrono::steady_clock::now();
  const provision::PfOutcome outcome = Apply0(R"({"vfs": 2, "driver": "mlx5_core"})");
  ASSERT_TRUE(outcome.error);
  const std::string said = Describe(*outcome.error);
  EXPECT_NE(said.find("VF 1"), std::string::npos) << said;
  EXPECT_NE(said.find(VfsOf(kPf0)[1]), std::string::npos) << said;
  EXPECT_NE(said.find("mlx5_core did not take it"), std::string::npos) << said;
  EXPECT_NE(said.find("modprobe"), std::string::npos) << said;
  EXPECT_LT(control_.latest_deadline(), begin + provision::kProvisionLimit / 2) << "the kernel has said no";
}

TEST_F(SettleTest, AnInterfaceThatComesLateIsWaitedFor) {
  control_.PutOff();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_FALSE(Apply0(R"({"vfs": 2})").error);
  EXPECT_GT(control_.latest_deadline(), begin);
}

// Without autoprobe the kernel binds only a named VF.
TEST_F(SettleTest, WithoutAutoprobeADriverComesBackByItsName) {
  ASSERT_FALSE(Apply0(R"({"vfs": 2})").error);
  control_.AddPf(kPf0, false);
  const provision::PfOutcome outcome = Apply0(R"({"mac": "derived"})");
  EXPECT_FALSE(outcome.error) << Describe(*outcome.error);
  for (const std::string& vf : VfsOf(kPf0)) EXPECT_EQ(DriverOf(vf), "mlx5_core");
}

TEST_F(SettleTest, AVfThatIsRenamedBetweenTwoLooksGetsItsMtu) {
  RenameAt("FindLink host: pf0v1", "pf0v1", "ens1f0v1");
  const provision::PfOutcome outcome = Apply0(R"({"vfs": 2, "mtu": 9000})");
  EXPECT_EQ(renamed_, 1);
  EXPECT_FALSE(outcome.error) << Describe(*outcome.error);
  const FakeNetdev* netdev = NetdevOf(VfsOf(kPf0)[1]);
  ASSERT_NE(netdev, nullptr);
  EXPECT_EQ(netdev->link.name, "ens1f0v1");
  EXPECT_EQ(netdev->link.mtu, 9000);
}

// After the check, its driver made another one with another index.
TEST_F(SettleTest, AVfWhoseInterfaceIsMadeAgainGetsItsMtu) {
  int made_again = 0;
  kernel_.before = [&](const std::string& call) {
    FakeNetdev* netdev = call.rfind("ChangeLink", 0) == 0 ? kernel_.state().Find(kHost, "pf0v0") : nullptr;
    if (netdev == nullptr || ++made_again > 1) return;
    netdev->link.index += 1000;
    kernel_.Sync();
  };
  const provision::PfOutcome outcome = Apply0(R"({"vfs": 1, "mtu": 9000})");
  EXPECT_GT(made_again, 0);
  EXPECT_FALSE(outcome.error) << Describe(*outcome.error);
  EXPECT_EQ(NetdevOf(VfsOf(kPf0)[0])->link.mtu, 9000);
}

// The host's links are read once for all PFs.
TEST_F(SettleTest, APfThatIsRenamedAfterTheDumpIsFound) {
  ASSERT_FALSE(Apply0(R"({"vfs": 1, "driver": "vfio-pci"})").error);
  RenameAt("GetVf", "pf1", "ens9f1");
  const provision::VfsPlan plan = Plan(R"({"vfs": 1, "driver": "vfio-pci", "mac": "derived"})");
  EXPECT_EQ(renamed_, 1);
  ASSERT_EQ(plan.pfs.size(), 2U);
  EXPECT_FALSE(plan.pfs[1].refused) << Describe(*plan.pfs[1].refused);
  ASSERT_TRUE(plan.pfs[1].actual.link);
  EXPECT_EQ(plan.pfs[1].actual.link->name, "ens9f1");
}

}  // namespace
}  // namespace railhead::testing

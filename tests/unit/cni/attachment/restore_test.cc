// After a pod's DEL its NIC is as before its ADD, whatever the pod has set on the NIC. On the fake kernel.
#include <cerrno>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "netns/base/text.h"
#include "tests/support/fake_kernel/random_settings.h"
#include "tests/support/plugin/faults_fixture.h"

namespace railhead::testing {
namespace {

// A node whose NICs have every setting that there is, and a pod that changes them.
class RestoreFixture : public FaultsFixture {
 protected:
  void MakeNics() override;
  void SetUp() override;

  FakeNetdev& Nic();
  FakeNetdev& Nic(const std::string& bdf);
  std::string& Setting(const std::string& name) { return Nic().device.values[name]; }
  // The pod's changes bypass the driver's checks, so that any state occurs.
  void Change(const DeviceField& field, std::mt19937& random);

  // Since the last ClearLog().
  [[nodiscard]] int Rebinds() const;
  [[nodiscard]] std::string AttachLog() const { return File("/run/railhead/attach.log"); }

  Call call_;
};

// The same with a driver that takes its MAC when it binds, and then renames its netdev.
class RestoreIgbvfFixture : public RestoreFixture {
 protected:
  void MakeNics() override;
};

void RestoreFixture::MakeNics() {
  vfs_.push_back(kernel_.AddPf(
      {.address = "0000:43:00.0", .netdev = "pf0", .driver = {.settings = AllSettings()}}, {.count = 2}));
}

void RestoreIgbvfFixture::MakeNics() {
  vfs_.push_back(kernel_.AddPf({.address = "0000:43:00.0",
                                .netdev = "pf0",
                                .driver = {.name = "igbvf",
                                           .min_tx_rate = false,
                                           .link_state = false,
                                           .s_vlan = false,
                                           .mac_at_bind = true,
                                           .bind_name = "eth",
                                           .settings = AllSettings()}},
                               {.count = 2}));
}

void RestoreFixture::SetUp() {
  FaultsFixture::SetUp();
  // Operators set a MAC. A VF without one has another MAC after each rebind.
  for (FakeFunction& function : kernel_.state().functions) {
    if (function.state) function.state->mac = kernel_.state().OfFunction(function.bdf)->link.mac;
  }
  call_ = {.config = Usual()};
}

FakeNetdev& RestoreFixture::Nic() {
  return Nic(vfs_[0][0]);
}

FakeNetdev& RestoreFixture::Nic(const std::string& bdf) {
  return *kernel_.state().OfFunction(bdf);
}

void RestoreFixture::Change(const DeviceField& field, std::mt19937& random) {
  std::string& value = Setting(std::string(field.name));
  value = AnotherValue(field, value, random);
}

int RestoreFixture::Rebinds() const {
  int rebinds = 0;
  for (const std::string& line : Split(kernel_.Log(), '\n')) {
    if (line.find("RebindDriver ") != std::string::npos) ++rebinds;
  }
  return rebinds;
}

constexpr int kRounds = 120;

class RestoreTest : public RestoreFixture {
 protected:
  // Changes some fields at random, and returns which ones.
  std::set<std::string> ChangeSome(std::mt19937& random, unsigned one_of) {
    std::set<std::string> changed;
    for (const DeviceField& field : DeviceFields()) {
      if (random() % one_of != 0) continue;
      Change(field, random);
      changed.emplace(field.name);
    }
    // A driver's table does not name more queues than there are.
    if (changed.contains("rss.table") || changed.contains("channels.combined"))
      Setting("channels.combined") = "8";
    return changed;
  }

  // An attachment whose pod changes one field. The driver refuses to restore that field with `error`. Returns
  // how often the driver was bound again.
  int RefuseOne(const DeviceField& field, int error, std::mt19937& random) {
    EXPECT_TRUE(Add(call_));
    do {
      Change(field, random);
    } while (Setting(std::string(field.name)).empty());
    kernel_.FailEvery("WriteDevice", error, std::string(field.name) + "=");
    const auto deleted = Del(call_);
    EXPECT_TRUE(deleted) << Describe(deleted.error());
    const int rebinds = Rebinds();
    kernel_.StopFailing();
    return rebinds;
  }
};

TEST_F(RestoreTest, AnySetOfChangesIsUndone) {
  std::mt19937 random = SeededGenerator();
  std::set<std::string> ever;
  int gone = 0;
  for (int round = 0; round < kRounds; ++round) {
    const bool namespace_goes = random() % 3 == 0;
    gone += namespace_goes ? 1 : 0;
    const auto before = Nic().device;
    ASSERT_TRUE(Add(call_));
    EXPECT_EQ(Nic().device, before) << "ADD changes nothing of it";
    ever.merge(ChangeSome(random, 1 + static_cast<unsigned>(random() % 10)));
    const DeviceState changed = Nic().device;
    if (namespace_goes) kernel_.RemoveNamespace(pod_);
    kernel_.ClearLog();
    const auto deleted = Del(call_);
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    ASSERT_EQ(Nic().device.values, before.values) << "of " << ::testing::PrintToString(changed.values);
    EXPECT_EQ(Rebinds(), 0);
    if (namespace_goes) pod_ = MakePod("pod" + std::to_string(2 + round));
  }
  EXPECT_EQ(ever.size(), DeviceFields().size()) << "every setting was changed";
  EXPECT_GT(gone, kRounds / 10);
}

// Settings of the host stay, although they differ from the driver's defaults. DEL restores those that the pod
// has changed.
TEST_F(RestoreTest, WhatTheHostHasSetIsBack) {
  std::mt19937 random = SeededGenerator();
  for (int round = 0; round < kRounds; ++round) {
    (void)ChangeSome(random, 2);
    // The host holds these XDP programs, so DEL can attach them again by number. A TCX program cannot be
    // attached again.
    for (const char* program : {"xdp.generic", "xdp.driver", "xdp.offload"})
      if (!Setting(program).empty()) kernel_.state().programs.insert(Setting(program));
    Setting("tcx.ingress") = "";
    Setting("tcx.egress") = "";
    kernel_.Sync();
    const auto before = World();
    ASSERT_TRUE(Add(call_));
    (void)ChangeSome(random, 2);
    kernel_.ClearLog();
    const auto deleted = Del(call_);
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    ASSERT_EQ(ChangedSince(before), "") << kernel_.Log();
  }
}

// Nothing is written where nothing was changed.
TEST_F(RestoreTest, NoChangeCostsOneLook) {
  ASSERT_TRUE(Add(call_));
  kernel_.ClearLog();
  ASSERT_TRUE(Del(call_));
  EXPECT_EQ(kernel_.Log().find("WriteDevice"), std::string::npos);
  EXPECT_EQ(kernel_.Log().find("ReadDevice"), kernel_.Log().rfind("ReadDevice")) << kernel_.Log();
}

// The kernel refuses fewer queues than the pod's table names until the table is restored
// (ethtool_check_max_channel).
TEST_F(RestoreTest, SettingsThatStandAgainstEachOther) {
  const auto before = World();
  ASSERT_TRUE(Add(call_));
  Setting("channels.combined") = "8";
  Setting("rss.table") = "07000000070000000700000007000000";
  Setting("xdp.driver") = "77";
  kernel_.ClearLog();
  ASSERT_TRUE(Del(call_));
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_EQ(Rebinds(), 0);
}

TEST_F(RestoreTest, WhatIsRefusedGoesWithTheDriver) {
  std::mt19937 random = SeededGenerator();
  const auto before = World();
  std::size_t tried = 0;
  for (const DeviceField& field : DeviceFields()) {
    SCOPED_TRACE(std::string(field.name));
    EXPECT_EQ(RefuseOne(field, EIO, random),
              field.source == DeviceSource::kQdisc || field.name == "dcb.applications"
                  ? 0  // the move has removed it already
                  : 1);
    ASSERT_EQ(ChangedSince(before), "");
    ++tried;
  }
  EXPECT_GT(tried, 100U);
  EXPECT_NE(AttachLog().find(R"("reboundFor":"rings.rx)"), std::string::npos) << AttachLog();
}

// If the device refuses the host's value, the rebind loses it. The pod's value does not stay.
TEST_F(RestoreTest, ThePodsValueNeverStays) {
  std::mt19937 random = SeededGenerator();
  std::size_t tried = 0;
  for (const DeviceField& field : DeviceFields()) {
    if (field.kind == DeviceFieldKind::kAttached) continue;
    SCOPED_TRACE(std::string(field.name));
    Nic().device = AllSettings();
    const std::string first = Setting(std::string(field.name));
    Change(field, random);
    if (field.name == "channels.combined" || field.name == "rss.table") continue;  // see above
    EXPECT_EQ(RefuseOne(field, EIO, random), 1);
    EXPECT_EQ(Setting(std::string(field.name)), first) << "as the driver begins";
    ++tried;
  }
  EXPECT_GT(tried, 80U);
}

// If a driver cannot set a field, it has chosen the value itself. DEL does not rebind for such a field.
TEST_F(RestoreTest, WhatTheDriverReportsCostsNoRebind) {
  std::mt19937 random = SeededGenerator();
  std::size_t tried = 0;
  for (const DeviceField& field : DeviceFields()) {
    const bool reported = field.kind == DeviceFieldKind::kReported;
    if (field.kind == DeviceFieldKind::kAttached) continue;
    SCOPED_TRACE(std::string(field.name));
    EXPECT_EQ(RefuseOne(field, EOPNOTSUPP, random), reported ? 0 : 1);
    Nic().device = AllSettings();
    tried += reported ? 1 : 0;
  }
  EXPECT_GT(tried, 10U);
}

TEST_F(RestoreTest, AProgramThatALinkHoldsGoesWithTheDriver) {
  const auto before = World();
  for (const char* place : {"xdp.generic", "xdp.driver", "xdp.offload", "tcx.ingress", "tcx.egress"}) {
    ASSERT_TRUE(Add(call_));
    Setting(place) = "77";
    Nic().linked_programs = {"77"};
    kernel_.ClearLog();
    ASSERT_TRUE(Del(call_));
    EXPECT_EQ(Rebinds(), 1) << place;
    ASSERT_EQ(ChangedSince(before), "") << place;
  }
}

// DEL removes the pod's program. The host's program cannot be restored, since the last reference to it is
// gone.
TEST_F(RestoreTest, AProgramOfTheHostThatIsGoneIsNoReason) {
  Setting("xdp.generic") = "5";
  Setting("tcx.ingress") = "6";
  ASSERT_TRUE(Add(call_));
  Setting("xdp.generic") = "77";
  Setting("tcx.ingress") = "78";
  kernel_.ClearLog();
  ASSERT_TRUE(Del(call_));
  EXPECT_EQ(Rebinds(), 0);
  EXPECT_EQ(Setting("xdp.generic"), "");
  EXPECT_EQ(Setting("tcx.ingress"), "");
}

// Like railheadd, which may not call bpf(2). DEL restores every other setting, and the device does not stay
// stuck.
TEST_F(RestoreTest, ProgramsThatCannotBeReadAreNoReason) {
  ASSERT_TRUE(Add(call_));
  Setting("rings.rx") = "4096";
  for (const char* place : {"tcx.ingress", "tcx.egress"}) Nic().device.values.erase(place);
  kernel_.ClearLog();
  const auto deleted = Del(call_);
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(Rebinds(), 0);
  EXPECT_EQ(Setting("rings.rx"), *AllSettings().Find("rings.rx"));
}

// A PF in a pod can get VFs.
TEST_F(RestoreTest, APfWithVfsIsNotBoundAnew) {
  kernel_.AddPf({.address = "0000:84:00.0", .netdev = "pf2", .driver = {.settings = AllSettings()}});
  const Call call{.config = R"("deviceID":"0000:84:00.0","vlan":0,)" + Ipam()};
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  Nic("0000:84:00.0").device.values["rings.rx"] = "4096";
  kernel_.FailEvery("WriteDevice", EBUSY, "rings.rx=");
  sysfs_.AddVfs("0000:84:00.0", 1);
  const auto refused = Del(call);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  EXPECT_NE(refused.error().message.find("rings.rx"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().hint.find("VFs"), std::string::npos) << refused.error().hint;
  EXPECT_EQ(Rebinds(), 0);
  kernel_.StopFailing();
  const auto deleted = Del(call);
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(Nic("0000:84:00.0").device, AllSettings());
}

// DEL that fails, or is killed, at every call of the kernel, while it puts settings back: on the fake kernel.

// What the pod does to its NIC before DEL.
enum class Left { kSettings, kHeldProgram, kSettingsAndMac, kMac };

template <typename Fixture>
class RestoreFaultsTest : public Fixture {
 protected:
  void Pollute(Left left) {
    std::mt19937 random(7);
    if (left == Left::kMac || left == Left::kSettingsAndMac) {
      const auto pod = this->kernel_.OpenRoute(this->kernel_.OpenNetns(this->pod_).value()).value();
      const LinkChange change{.mac = MacAddress::Parse("02:cc:00:00:00:01")};
      ASSERT_TRUE(pod->ChangeLink(this->PodLink().index, change));
    }
    if (left == Left::kMac) return;
    for (const DeviceField& field : DeviceFields()) this->Change(field, random);
    if (left != Left::kHeldProgram) return;
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
  VfSettings change;
  change.mac = MacAddress::Parse("02:bb:00:00:00:01");
  ASSERT_EQ(kernel_.state().SetVf(*kernel_.state().Function("0000:43:00.0"), 0, change), 0);
  ASSERT_NE(Nic().link.mac, *change.mac);
  KillEverywhere(Left::kHeldProgram);
  FailEverywhere(Left::kHeldProgram, FakeKernel::Fault::kRefused);
}

TEST_F(IgbvfDriverTest, WithAMacOfTheConfiguration) {
  call_.config += R"(,"mac":"02:aa:00:00:00:01")";
  // The driver is bound again for the MAC, and the rebind removes every change of the pod.
  least_calls_ = 20;
  KillEverywhere(Left::kHeldProgram);
  KillEverywhere(Left::kSettings);
}

// The PF takes the trust away again, and then refuses the VF's own change back.
TEST_F(IgbvfDriverTest, TheMacOfATrustedPodIsUndone) {
  call_.config += R"(,"trust":"on")";
  ASSERT_TRUE(Add(call_));
  Pollute(Left::kMac);
  ASSERT_TRUE(Del(call_));
  EXPECT_EQ(Rebinds(), 0) << "the VF's own change is enough";
  least_calls_ = 15;
  KillEverywhere(Left::kSettingsAndMac);
  KillEverywhere(Left::kMac);
  FailEverywhere(Left::kMac, FakeKernel::Fault::kRefused);
  FailEverywhere(Left::kMac, FakeKernel::Fault::kPartly);
}

// A PF that had no MAC for the VF has the pod's then, and the VF cannot change it back: a rebind at any
// moment of which DEL is killed.
TEST_F(IgbvfDriverTest, TheMacThatAPfHasOnlyFromAPodIsUndone) {
  FakeFunction& pf = *kernel_.state().Function("0000:43:00.0");
  const MacAddress before = Nic().link.mac;
  Call del = call_;
  del.command = "DEL";
  int nth = 1;
  for (bool killed = true; killed; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    ASSERT_EQ(kernel_.state().SetVf(pf, 0, {.mac = MacAddress{}}), 0);
    ASSERT_TRUE(Add(call_));
    Pollute(Left::kMac);
    ASSERT_EQ(kernel_.state().SetVf(pf, 0, {.mac = PodLink().mac}), 0);
    kernel_.FailEvery("ChangeLink", EIO, "mac 0");
    killed = Kill(del, nth);
    kernel_.StopFailing();
    ASSERT_TRUE(Del(call_)) << kernel_.Log();
    const FakeNetdev* nic = kernel_.state().OfFunction(vfs_[0][0]);
    ASSERT_NE(nic, nullptr) << "its driver is not bound\n" << kernel_.Log();
    ASSERT_EQ(nic->ns, kHost);
    if (killed) ASSERT_EQ(nic->link.mac, before) << kernel_.Log();
  }
  EXPECT_GT(nth, 15);
}

}  // namespace
}  // namespace railhead::testing

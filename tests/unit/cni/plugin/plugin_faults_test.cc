// ADD and DEL that fail, or are killed, at every call of the kernel.
#include <cerrno>
#include <cstdio>

#include "cni/protocol/cni_result.h"
#include "tests/support/plugin/faults_fixture.h"
#include "tests/support/plugin/rails_fixture.h"

namespace railhead::testing {
namespace {

using PluginFaultsTest = FaultsFixture;

constexpr const char* kAllSettings =
    R"(,"vlan":300,"vlanQoS":7,"mac":"02:aa:00:00:00:01","spoofchk":"off","trust":"on","link_state":"enable",
       "max_tx_rate":1000,"min_tx_rate":10,"mtu":4200)";

TEST_F(PluginFaultsTest, AddRefusedAtEveryCall) {
  FailAddEverywhere({.config = Usual() + kAllSettings}, FakeKernel::Fault::kRefused, 35);
}

TEST_F(PluginFaultsTest, AddRefusedPartlyAtEveryCall) {
  FailAddEverywhere({.config = Usual() + kAllSettings}, FakeKernel::Fault::kPartly, 35);
}

TEST_F(PluginFaultsTest, DelRefusedAtEveryCall) {
  FailDelEverywhere({.config = Usual() + kAllSettings}, FakeKernel::Fault::kRefused, 15);
}

TEST_F(PluginFaultsTest, DelRefusedPartlyAtEveryCall) {
  FailDelEverywhere({.config = Usual() + kAllSettings}, FakeKernel::Fault::kPartly, 15);
}

TEST_F(PluginFaultsTest, ExclusiveModeRefusedAtEveryCall) {
  kernel_.SetRdmaMode(RdmaNetnsMode::kExclusive);
  kernel_.Sync();
  FailAddEverywhere({.config = Usual()}, FakeKernel::Fault::kRefused, 38);
  FailDelEverywhere({.config = Usual()}, FakeKernel::Fault::kRefused, 17);
}

TEST_F(PluginFaultsTest, SecondNicOfAPodRefusedAtEveryCall) {
  ASSERT_TRUE(Add({.config = Usual(0, 0)}));
  FailAddEverywhere({.network = "rail1", .ifname = "net2", .config = Usual(0, 1)},
                    FakeKernel::Fault::kRefused, 35);
  EXPECT_TRUE(Check({.config = Usual(0, 0)})) << "the first is as it was";
}

// A killed ADD, then DEL, as a runtime does.
TEST_F(PluginFaultsTest, AddKilledAtEveryCallThenDel) {
  const Call call{.config = Usual() + kAllSettings};
  const auto before = World();
  const int calls = CountAdd(call, 35);
  Call del = call;
  del.command = "DEL";
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    ASSERT_TRUE(Kill(call, nth));
    const auto deleted = Del(call);
    ASSERT_TRUE(deleted) << Describe(deleted.error()) << "\n" << kernel_.Log();
    ASSERT_EQ(ChangedSince(before), "") << kernel_.Log();
  }
}

// A killed ADD whose pod never comes back. Another pod gets the device.
TEST_F(PluginFaultsTest, AddKilledAtEveryCallThenAddOfAnotherPod) {
  const Call call{.config = Usual() + kAllSettings};
  const std::string other = MakePod("pod2");
  const Call next{.container = "c2", .netns = other, .config = Usual()};
  const auto before = World();
  const int calls = CountAdd(call, 35);
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    ASSERT_TRUE(Kill(call, nth));
    const auto added = Add(next);
    ASSERT_TRUE(added) << Describe(added.error()) << "\n" << kernel_.Log();
    EXPECT_TRUE(Check(next));
    ASSERT_TRUE(Del(call)) << "of the killed one: it must not touch the device";
    EXPECT_TRUE(Check(next));
    ASSERT_TRUE(Del(next));
    ASSERT_EQ(ChangedSince(before), "") << kernel_.Log();
  }
}

// The runtime retries the same sandbox.
TEST_F(PluginFaultsTest, AddKilledAtEveryCallThenTheSameAdd) {
  const Call call{.config = Usual() + kAllSettings};
  const auto before = World();
  const int calls = CountAdd(call, 35);
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    ASSERT_TRUE(Kill(call, nth));
    const auto added = Add(call);
    ASSERT_TRUE(added) << Describe(added.error()) << "\n" << kernel_.Log();
    EXPECT_TRUE(Check(call));
    ASSERT_TRUE(Del(call));
    ASSERT_EQ(ChangedSince(before), "") << kernel_.Log();
  }
}

TEST_F(PluginFaultsTest, DelKilledAtEveryCallThenDel) {
  const Call call{.config = Usual() + kAllSettings};
  const auto before = World();
  const int calls = CountDel(call, 15);
  Call del = call;
  del.command = "DEL";
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    ASSERT_TRUE(Add(call));
    ASSERT_TRUE(Kill(del, nth));
    const auto deleted = Del(call);
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    ASSERT_EQ(ChangedSince(before), "");
  }
}

// After the kill the pod's namespace goes, so the device cannot be restored through it.
TEST_F(PluginFaultsTest, AddKilledAtEveryCallThenNamespaceGone) {
  const Call usual{.config = Usual() + kAllSettings};
  const int calls = CountAdd(usual, 35);
  const auto without_pod = [this] {
    kernel_.RemoveNamespace(pod_);
    return World();
  };
  const auto before = without_pod();
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    pod_ = MakePod("pod1");
    ASSERT_TRUE(Kill(usual, nth));
    (void)without_pod();
    const auto deleted = Del(usual);
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    ASSERT_EQ(ChangedSince(before), "");
  }
}

// While ADD runs, the runtime gives up the sandbox: the namespace's path goes, and only ADD's own handle
// keeps the namespace. This happens at every call, and ADD fails at a later one. ADD's undo moves the device
// out itself.
TEST_F(PluginFaultsTest, NamespaceGivenUpAtEveryCallAndAddFailsLater) {
  const Call call{.config = Usual() + kAllSettings};
  const int calls = CountAdd(call, 35);
  ASSERT_GT(calls, 10);
  const auto before = World();
  int failed = 0;
  for (int nth = 1; nth < calls; ++nth) {
    // The next call, the last one, and one in between that is another each time.
    for (const int fails : {nth + 1, nth + 1 + (nth * 7) % (calls - nth), calls}) {
      SCOPED_TRACE("given up before call " + std::to_string(nth) + ", failed at call " +
                   std::to_string(fails));
      kernel_.FailCall(fails, EIO);
      int seen = 0;
      kernel_.before = [&](const std::string&) {
        if (++seen == nth) (void)::rename(pod_.c_str(), (pod_ + ".gone").c_str());
      };
      const auto added = Add(call);
      kernel_.before = {};
      kernel_.StopFailing();
      (void)::rename((pod_ + ".gone").c_str(), pod_.c_str());
      if (!added) {
        ++failed;
        EXPECT_EQ(added.error().hint.find("DEL or railheadd will restore it"), std::string::npos)
            << Describe(added.error());
      } else {
        ASSERT_TRUE(Del(call));
      }
      ASSERT_EQ(ChangedSince(before), "") << (added ? "succeeded" : Describe(added.error()));
    }
  }
  EXPECT_GT(failed, 2 * calls) << "most failures are ADD's";
}

// While ADD runs, an administrator or a resetting PF removes the driver or the VFs.
class PluginLostDeviceTest : public PluginFaultsTest {
 protected:
  FakeFunction& Vf0() { return *kernel_.state().Function(vfs_[0][0]); }
  void Unbind() {
    kernel_.state().Unbind(Vf0());
    kernel_.Sync();
  }
  void Bind() {
    if (kernel_.state().OfFunction(vfs_[0][0]) == nullptr) kernel_.state().Bind(Vf0());
    kernel_.Sync();
  }
};

TEST_F(PluginLostDeviceTest, OneCodeWhateverTheStep) {
  const Call call{.config = Usual() + kAllSettings + R"(,"linkTimeoutSeconds":1)"};
  const int calls = CountAdd(call, 35);
  ASSERT_GT(calls, 10);
  for (const bool bound_anew : {false, true}) {
    int lost = 0;
    for (int nth = 1; nth <= calls; ++nth) {
      SCOPED_TRACE((bound_anew ? "bound anew before call " : "unbound before call ") + std::to_string(nth));
      int seen = 0;
      kernel_.before = [&](const std::string&) {
        if (++seen != nth) return;
        Unbind();
        if (bound_anew) Bind();
      };
      const auto added = Add(call);
      kernel_.before = {};
      Bind();
      if (!added) {
        ++lost;
        ASSERT_EQ(CniCodeOf(added.error().code), 101) << Describe(added.error());
        EXPECT_NE(added.error().message.find(vfs_[0][0]), std::string::npos) << added.error().message;
      }
      const auto deleted = Del(call);
      ASSERT_TRUE(deleted) << Describe(deleted.error());
      ASSERT_EQ(HeldAddresses(), "");
      ASSERT_EQ(Files(), "");
    }
    EXPECT_GT(lost, calls / 2) << bound_anew;
  }
}

// The driver igbvf takes its MAC when it binds, and then has another host name.
class IgbvfTest : public PluginFaultsTest {
 protected:
  void MakeNics() override {
    vfs_.push_back(kernel_.AddPf({.address = "0000:43:00.0",
                                  .netdev = "pf0",
                                  .driver = {.name = "igbvf",
                                             .min_tx_rate = false,
                                             .link_state = false,
                                             .s_vlan = false,
                                             .mac_at_bind = true,
                                             .bind_name = "eth"}},
                                 {.count = 2}));
  }
  Call WithMac() { return {.config = Usual() + R"(,"mac":"02:aa:00:00:00:01","mtu":1400)"}; }
};

TEST_F(IgbvfTest, MacRoundTrip) {
  const auto before = World();
  const auto added = Add(WithMac());
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(PodLink().mac.ToString(), "02:aa:00:00:00:01");
  EXPECT_EQ(Vf(0).mac->ToString(), "02:aa:00:00:00:01");
  EXPECT_TRUE(Check(WithMac()));
  const auto deleted = Del(WithMac());
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(IgbvfTest, MacRoundTripFromAnAdministrativeMac) {
  VfSettings change;
  change.mac = MacAddress::Parse("02:bb:00:00:00:01");
  ASSERT_EQ(kernel_.state().SetVf(*kernel_.state().Function("0000:43:00.0"), 0, change), 0);
  kernel_.state().Unbind(*kernel_.state().Function(vfs_[0][0]));
  kernel_.state().Bind(*kernel_.state().Function(vfs_[0][0]));
  kernel_.Sync();
  const auto before = World();
  ASSERT_TRUE(Add(WithMac()));
  ASSERT_TRUE(Del(WithMac()));
  EXPECT_EQ(ChangedSince(before), "");
  FailDelEverywhere(WithMac(), FakeKernel::Fault::kRefused, 18);
}

// At a bind the new interface gets the driver's MTU. The pod gets the host's.
TEST_F(IgbvfTest, MtuSurvivesTheRebind) {
  (void)kernel_.state().Change(*kernel_.state().Find(kHost, "pf0v0"), {{.mtu = 1400}});
  const Call call{.config = Usual() + R"(,"mac":"02:aa:00:00:00:01")"};
  const auto before = World();
  ASSERT_TRUE(Add(call));
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
  EXPECT_EQ(PodLink().mtu, 1400);
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(IgbvfTest, RefusedAtEveryCall) {
  FailAddEverywhere(WithMac(), FakeKernel::Fault::kRefused, 30);
  FailDelEverywhere(WithMac(), FakeKernel::Fault::kRefused, 18);
}

// A rebind that was killed after the unbind left the VF without a driver for good. DEL took it for a device
// without anything to restore.
TEST_F(IgbvfTest, DelKilledAtEveryCallThenDel) {
  const auto before = World();
  const int calls = CountDel(WithMac(), 18);
  Call del = WithMac();
  del.command = "DEL";
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    ASSERT_TRUE(Add(WithMac()));
    ASSERT_TRUE(Kill(del, nth));
    const auto deleted = Del(WithMac());
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    ASSERT_EQ(ChangedSince(before), "");
  }
}

TEST_F(IgbvfTest, KilledAtEveryCallThenDel) {
  const auto before = World();
  const int calls = CountAdd(WithMac(), 30);
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    ASSERT_TRUE(Kill(WithMac(), nth));
    const auto deleted = Del(WithMac());
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    ASSERT_EQ(ChangedSince(before), "");
  }
}

// All devices or none: an ADD of several that fails, or is killed, at every call.

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

// The pod never comes back, and another one gets one of its devices: its ADD restores all.
TEST_F(PluginRailsFaultsTest, AddKilledAtEveryCallThenAddOfAnotherPod) {
  const std::string other = MakePod("pod2");
  const Call next{.container = "c2",
                  .netns = other,
                  .config = R"("deviceID":")" + Bdf(1) + R"(","ipam":{},"ncclConfig":"off")"};
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

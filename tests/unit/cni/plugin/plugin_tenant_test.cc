// Devices that move from one Kubernetes namespace's pod to another's: nothing that the first pod set up on
// them works afterwards.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cni/state/tenants.h"
#include "tests/support/plugin/faults_fixture.h"

namespace railhead::testing {
namespace {

// igbvf's netdevs come back from a rebind under another name, and with the MAC that the PF says.
class PluginTenantTest : public FaultsFixture {
 protected:
  void SetUp() override {
    permissions_ = R"(,"devices":"any")";
    FaultsFixture::SetUp();
    // The PF's MAC for a VF can differ from the MAC that the host has set.
    for (FakeFunction& function : kernel_.state().functions) {
      if (function.state && function.vf == 1) function.state->mac = *MacAddress::Parse("02:99:00:00:00:01");
    }
    other_ = MakePod("other");
  }
  void MakeNics() override {
    const FakeDriver igbvf{.name = "igbvf",
                           .min_tx_rate = false,
                           .link_state = false,
                           .s_vlan = false,
                           .mac_at_bind = true,
                           .bind_name = "eth",
                           .settings = AllSettings()};
    vfs_.push_back(
        kernel_.AddPf({.address = "0000:43:00.0", .netdev = "pf0", .driver = igbvf}, {.count = 3}));
    vfs_.push_back(kernel_.AddPf(
        {.address = "0000:83:00.0", .netdev = "pf1", .rdma = "mlx5_1", .driver = {.bind_name = "eth"}},
        {.count = 3, .rdma = "mlx5_{pf}v{n}"}));
  }
  void Policy(const std::string& reset) {
    auto fabric = nlohmann::json::parse(File("/etc/railhead/fabric.json"));
    fabric["policy"]["reset"] = reset;
    WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json", fabric.dump());
  }
  // A call for a pod of that namespace; "": one without a pod.
  [[nodiscard]] Call Of(const std::string& pod_namespace, int n = 0, int rail = 0) const {
    Call call{.config = Usual(n, rail) + R"(,"ncclConfig":"off")"};
    if (!pod_namespace.empty())
      call.args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=" + pod_namespace + ";K8S_POD_NAME=train";
    return call;
  }
  void AddAndDel(const Call& call) {
    const auto added = Add(call);
    ASSERT_TRUE(added) << Describe(added.error());
    const auto deleted = Del(call);
    ASSERT_TRUE(deleted) << Describe(deleted.error());
  }
  // Like an ipvlan that a pod has moved on into a namespace of its own.
  void Leave(const std::string& ns, const std::string& name, const std::string& on) {
    kernel_.AddVlan(pod_, name, on);
    kernel_.state().Find(pod_, name)->ns = ns;
  }
  // Like an ipvlan that a pod without devices makes on one of the host's (IFLA_LINK_NETNSID).
  void Stack(const std::string& name, int n, int rail) {
    const std::string& bdf = vfs_.at(static_cast<std::size_t>(rail)).at(static_cast<std::size_t>(n));
    kernel_.AddVlan(kHost, name, kernel_.state().OfFunction(bdf)->link.name);
    kernel_.state().Find(kHost, name)->ns = other_;
  }
  [[nodiscard]] bool IsIn(const std::string& ns, const std::string& name) {
    return kernel_.state().Find(ns, name) != nullptr;
  }
  int Count(const std::string& words) {
    const std::string log = kernel_.Log();
    int count = 0;
    for (auto at = log.find(words); at != std::string::npos; at = log.find(words, at + 1)) ++count;
    return count;
  }
  int Rebinds(int n = 0, int rail = 0) {
    return Count("RebindDriver " + vfs_.at(static_cast<std::size_t>(rail)).at(static_cast<std::size_t>(n)));
  }
  std::optional<Tenant> Last(int n = 0, int rail = 0) {
    return *ReadTenant(sysfs_.root(),
                       vfs_.at(static_cast<std::size_t>(rail)).at(static_cast<std::size_t>(n)));
  }

  std::string other_;  // another pod's namespace, or one that a pod has hidden
};

// The attack: a pod stacks an interface on its VF and hides it from DEL. It then sends through the next
// tenant's VF.
TEST_F(PluginTenantTest, WhatIsHiddenElsewhereDoesNotReachTheNextTenant) {
  for (int rail = 0; rail < 2; ++rail) {
    for (int n = 0; n < 2; ++n) {
      SCOPED_TRACE(vfs_[static_cast<std::size_t>(rail)][static_cast<std::size_t>(n)]);
      const auto before = World();
      ASSERT_TRUE(Add(Of("red", n, rail)));
      Leave(other_, "hidden", "net1");
      ASSERT_TRUE(Del(Of("red", n, rail)));
      ASSERT_TRUE(IsIn(other_, "hidden")) << "DEL does not see it";
      const auto added = Add(Of("blue", n, rail));
      ASSERT_TRUE(added) << Describe(added.error());
      EXPECT_FALSE(IsIn(other_, "hidden"));
      EXPECT_TRUE(Check(Of("blue", n, rail)));
      ASSERT_TRUE(Del(Of("blue", n, rail)));
      EXPECT_EQ(ChangedSince(before), "") << "name, MAC, MTU and settings are as before";
    }
  }
}

// The attack: a pod that never got a device stacks an interface on an idle one of the host.
TEST_F(PluginTenantTest, WhatAnotherPodStacksOnAnIdleDeviceDoesNotReachAPod) {
  const std::string host = World();
  for (const std::string last : {"nobody", "red", "blue"}) {
    for (int rail = 0; rail < 2; ++rail) {
      for (int n = 0; n < 2; ++n) {
        SCOPED_TRACE(last + " had " + vfs_[static_cast<std::size_t>(rail)][static_cast<std::size_t>(n)]);
        if (last != "nobody") AddAndDel(Of(last, n, rail));
        Stack("hidden", n, rail);
        const auto added = Add(Of("red", n, rail));
        ASSERT_TRUE(added) << Describe(added.error());
        EXPECT_FALSE(IsIn(other_, "hidden"));
        EXPECT_TRUE(Check(Of("red", n, rail)));
        ASSERT_TRUE(Del(Of("red", n, rail)));
        EXPECT_EQ(Last(n, rail)->leftover, "");
        EXPECT_EQ(ChangedSince(host), "");
      }
    }
  }
}

// It comes back with each reset, or no reset is allowed: the pod does not get the device, and all is as
// before.
TEST_F(PluginTenantTest, ADeviceWhoseUppersStayIsRefused) {
  const auto refused = [&] {
    const auto added = Add(Of("red", 1));
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().code, ErrorCode::kBusy);
    EXPECT_NE(
        added.error().message.find("net1 (" + vfs_[0][1] + "): another network namespace has interfaces"),
        std::string::npos)
        << Describe(added.error());
    EXPECT_NE(added.error().hint.find("policy.reset"), std::string::npos) << added.error().hint;
    EXPECT_NE(Last(1)->leftover, "") << "the next ADD resets it";
  };
  const std::string host = World();
  int made = 0;
  kernel_.before = [&](const std::string& call) {
    if (call.starts_with("MoveLink") && kernel_.state().OfFunction(vfs_[0][1])->ns == kHost)
      Stack("hidden" + std::to_string(++made), 1, 0);
  };
  refused();
  EXPECT_EQ(Rebinds(1), 2) << "of three attempts";
  kernel_.before = {};
  EXPECT_TRUE(IsIn(other_, "hidden" + std::to_string(made)));
  Policy("never");
  refused();
  Policy("tenant");
  AddAndDel(Of("red", 1));
  EXPECT_FALSE(IsIn(other_, "hidden" + std::to_string(made)));
  EXPECT_EQ(ChangedSince(host), "");
}

TEST_F(PluginTenantTest, AKernelWithoutMacvlanAttachesWithoutThatCheck) {
  kernel_.FailEvery("HasUppers", EOPNOTSUPP);
  const auto added = Add(Of("red"));
  EXPECT_TRUE(added) << Describe(added.error());
  kernel_.FailEvery("HasUppers", EIO);
  EXPECT_FALSE(Add(Of("red", 1))) << "what cannot be checked is not handed out";
}

// Every pair of tenants under every policy.
TEST_F(PluginTenantTest, IsResetWhenTheTenantChangesOrThePolicySaysSo) {
  const std::string host = World();
  int resets = 0;
  for (const char* last : {"red", "blue", ""}) {
    for (const char* next : {"red", "blue", ""}) {
      for (const std::string policy : {"tenant", "always", "never"}) {
        SCOPED_TRACE(
            std::string("'").append(next).append("' after '").append(last).append("', ").append(policy));
        Policy("never");
        AddAndDel(Of(last));
        kernel_.ClearLog();
        Policy(policy);
        AddAndDel(Of(next));
        const bool another = std::string_view(last) != next;
        const bool expected = policy == "always" || (policy == "tenant" && another);
        EXPECT_EQ(Rebinds(), expected ? 1 : 0);
        resets += Rebinds();
        EXPECT_EQ(Last(), TenantOf(Request(Of(next)).args));
        EXPECT_EQ(ChangedSince(host), "");
      }
    }
  }
  EXPECT_EQ(resets, 15);
}

TEST_F(PluginTenantTest, WithinANamespaceOnlyWhenSomethingMayBeLeft) {
  AddAndDel(Of("red"));
  ASSERT_TRUE(Add(Of("red")));
  kernel_.AddVlan(pod_, "net1.7", "net1");
  ASSERT_TRUE(Del(Of("red")));
  EXPECT_EQ(Last()->leftover, "its pod had created net1.7 on it");
  EXPECT_EQ(Rebinds(), 0);
  AddAndDel(Of("red"));
  EXPECT_EQ(Rebinds(), 1);
  EXPECT_EQ(Last()->leftover, "");
  WriteFileAt(sysfs_.directory() + "/run/railhead/tenants/" + vfs_[0][0] + ".json", "{");
  AddAndDel(Of("red"));
  EXPECT_EQ(Rebinds(), 2) << "nobody knows who had it";
}

// The kernel takes 20 ms for each.
TEST_F(PluginTenantTest, ManyInterfacesOnADeviceCostOneRebind) {
  for (int rail = 0; rail < 2; ++rail) {
    const auto before = World();
    ASSERT_TRUE(Add(Of("red", 0, rail)));
    for (int i = 0; i < 1000; ++i) kernel_.AddVlan(pod_, "many" + std::to_string(i), "net1");
    kernel_.ClearLog();
    const auto deleted = Del(Of("red", 0, rail));
    ASSERT_TRUE(deleted) << Describe(deleted.error());
    EXPECT_EQ(Rebinds(0, rail), 1);
    EXPECT_EQ(Count("DeleteLink"), 0);
    EXPECT_EQ(ChangedSince(before), "");
  }
}

TEST_F(PluginTenantTest, TheSameTenantCostsNoCallOfTheKernel) {
  AddAndDel(Of("red"));
  const int calls = CountAdd(Of("red"), 30);
  std::filesystem::remove_all(sysfs_.directory() + "/run/railhead/tenants");
  EXPECT_EQ(CountAdd(Of("red"), 30), calls);
}

// Where the driver stays bound, the last tenant's processes are looked for.
TEST_F(PluginTenantTest, ADeviceThatCannotBeResetIsRefusedWhileItIsInUse) {
  sysfs_.Write("/proc/4711/comm", "train.py\n");
  ASSERT_TRUE(Add({.container = "c9", .netns = other_, .config = Usual(2, 1) + R"(,"ncclConfig":"off")"}));
  const auto refused = [&](const std::string& words) {
    const auto added = Add(Of("blue", 0, 1));
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().code, ErrorCode::kBusy);
    EXPECT_NE(added.error().message.find(words), std::string::npos) << Describe(added.error());
    EXPECT_NE(added.error().hint.find("pod red/train had it before"), std::string::npos)
        << added.error().hint;
  };
  for (const char* how : {"never", "tenant"}) {
    SCOPED_TRACE(how);
    Policy(how);
    AddAndDel(Of("red", 0, 1));
    kernel_.FailEvery("RebindDriver", EBUSY);
    const auto before = World();
    kernel_.state().Rdma("mlx5_pf1v0")->users = {{4711, {{"QP", 2}, {"context", 1}}}};
    refused("RDMA device mlx5_pf1v0 of " + vfs_[1][0] +
            " is used by process 4711 (train.py): 2 QP, 1 context");
    kernel_.state().Rdma("mlx5_pf1v0")->users = {{0, {{"context", 1}}}};
    refused("is used by a process that /proc does not show: 1 context");
    kernel_.state().Rdma("mlx5_pf1v0")->users.clear();
    const std::string uverbs = "uverbs" + std::to_string(kernel_.state().Rdma("mlx5_pf1v0")->uverbs);
    std::filesystem::create_directories(sysfs_.directory() + "/proc/4711/fd");
    std::filesystem::create_symlink("/dev/infiniband/" + uverbs, sysfs_.directory() + "/proc/4711/fd/9");
    refused("is used by process 4711 (train.py) through /dev/infiniband/" + uverbs);
    sysfs_.Remove("/proc/4711/fd/9");
    kernel_.AddVlan(kHost, "hidden", "pf1v0");
    kernel_.state().Find(kHost, "hidden")->ns = other_;
    refused("has interface hidden on top, in the pod of container c9");
    kernel_.state().RemoveNetdev(kernel_.state().Find(other_, "hidden")->id);
    EXPECT_EQ(ChangedSince(before), "");
    AddAndDel(Of("blue", 0, 1));
    EXPECT_EQ(ChangedSince(before), "");
    kernel_.StopFailing();
    AddAndDel(Of("red", 0, 1));
  }
}

// A VF with a user-space driver gets a function reset, if no program has it open.
TEST_F(PluginTenantTest, AFunctionThatProgramsDriveIsResetItself) {
  const std::string bdf = vfs_[1][1];
  kernel_.state().Unbind(*kernel_.state().Function(bdf));
  kernel_.Sync();
  sysfs_.Link("/sys/bus/pci/devices/" + bdf + "/driver", "/sys/bus/pci/drivers/vfio-pci");
  sysfs_.Link("/sys/bus/pci/devices/" + bdf + "/iommu_group", "/sys/kernel/iommu_groups/59");
  const auto resets = [&] { return kernel_.state().Function(bdf)->resets; };
  AddAndDel(Of("red", 1, 1));
  AddAndDel(Of("red", 1, 1));
  EXPECT_EQ(resets(), 0);
  AddAndDel(Of("blue", 1, 1));
  EXPECT_EQ(resets(), 1);
  kernel_.FailEvery("ResetFunction", EOPNOTSUPP);
  AddAndDel(Of("red", 1, 1));
  EXPECT_EQ(resets(), 1) << "nobody has it open";
}

// Killed anywhere: the next ADD completes the interrupted reset, and the device is as before. This costs at
// most one more reset.
TEST_F(PluginTenantTest, AnAddThatIsKilledWhileItResetsIsCompletedByTheNext) {
  const auto before = World();
  AddAndDel(Of("red", 1));
  const int first = kernel_.calls();
  AddAndDel(Of("blue", 1));
  const int calls = kernel_.calls() - first;
  ASSERT_GT(calls, 40);
  bool killed = true;
  int nth = 0;
  while (killed) {
    SCOPED_TRACE("call " + std::to_string(++nth));
    AddAndDel(Of("red", 1));
    killed = Kill(Of("blue", 1), nth);
    if (!killed) {
      ASSERT_TRUE(Del(Of("blue", 1)));
    }
    Call next = Of("green", 1);
    next.container = "c2";
    const auto added = Add(next);
    ASSERT_TRUE(added) << Describe(added.error());
    EXPECT_TRUE(Check(next));
    ASSERT_TRUE(Del(next));
    ASSERT_TRUE(Del(Of("blue", 1)));
    ASSERT_EQ(ChangedSince(before), "");
  }
  EXPECT_GT(nth, 40);
}

// The kernel refuses any one call. ADD fails or succeeds, and DEL restores the device.
TEST_F(PluginTenantTest, AnAddWhoseResetIsRefusedAnywhereLeavesTheDeviceAsItWas) {
  const auto before = World();
  AddAndDel(Of("red", 1));
  const int first = kernel_.calls();
  ASSERT_TRUE(Add(Of("blue", 1)));
  const int calls = kernel_.calls() - first;
  ASSERT_TRUE(Del(Of("blue", 1)));
  for (int nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE("call " + std::to_string(nth));
    AddAndDel(Of("red", 1));
    kernel_.FailCall(nth, EIO);
    const auto added = Add(Of("blue", 1));
    kernel_.StopFailing();
    ASSERT_TRUE(Del(Of("blue", 1)));
    // The next ADD completes an interrupted reset.
    AddAndDel(Of("green", 1));
    ASSERT_EQ(ChangedSince(before), "") << (added ? "succeeded" : Describe(added.error()));
  }
}

}  // namespace
}  // namespace railhead::testing

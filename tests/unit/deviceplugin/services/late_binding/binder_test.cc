// Which device a slot becomes: the one closest to the pod's accelerator, whichever accelerator that is.
#include "deviceplugin/services/late_binding/binder.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include "cni/fabric/fabric.h"
#include "cni/state/allocation.h"
#include "cni/state/bind_client.h"
#include "cni/state/bind_protocol.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "deviceplugin/node/resources/fabric_resources.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/node/resources/slots.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/root.h"
#include "tests/support/service/bind_server.h"
#include "tests/support/sysfs/machines.h"

namespace railhead::testing {
namespace {

// A server with two GPUs and a NIC on each of four switches; three VFs each.
class BinderTest : public ::testing::Test {
 protected:
  explicit BinderTest(int vfs = 3) : machine_(MakePcieA100(sysfs_)) {
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n");
    std::string rails;
    for (std::size_t i = 0; i < machine_.nics.size(); ++i) {
      vfs_.push_back(sysfs_.AddVfs(machine_.nics[i], vfs));
      rails += std::string(i == 0 ? "" : ",") + R"({"name":"rail)" + std::to_string(i) + R"(","pf":")" +
               machine_.nics[i] + R"("})";
    }
    const auto fabric = ParseFabric(R"({"version":1,"rails":[)" + rails +
                                        R"(],"pools":[{"resource":"a.io/roce","binding":"late"},)" +
                                        R"({"resource":"a.io/pf","device":"pf"}]})",
                                    "fabric.json");
    EXPECT_TRUE(fabric) << Describe(fabric.error());
    inventory_ = *inventory::Discover(root_, {});
    pools_ = BuildPools(resources::ResourcesOfFabric(*fabric, *inventory_)->specs, *inventory_);
    const auto slots = SlotPool(*pools_[0], {});
    for (const resources::PoolMember& slot : slots->members) slots_.push_back(slot.function.id);
    Refresh();
  }

  void Refresh(std::set<std::string> unhealthy = {}) {
    const topology::TopologyConfig config;
    const auto topology = *topology::Topology::Read(root_, *inventory_, config);
    view_.Set({pools_, std::move(unhealthy), topology,
               std::make_shared<const topology::AcceleratorIds>(IdsOf(root_, *topology, config))});
  }
  // What kubelet has done before ADD.
  void Give(const std::string& pod, const std::vector<std::string>& slots,
            const std::vector<std::string>& gpus) {
    Record(slots);
    std::string given;
    for (const std::string& slot : slots) given += (given.empty() ? "\"" : ",\"") + slot + "\"";
    List(pod, "a.io/roce", given);
    std::string ids;
    for (const std::string& gpu : gpus) ids += (ids.empty() ? "\"" : ",\"") + gpu + "\"";
    List(pod, "nvidia.com/gpu", ids);
  }
  // The pod's line in kubelet's checkpoint.
  void List(const std::string& pod, const std::string& resource, const std::string& ids) {
    entries_ += (entries_.empty() ? "" : ",") + std::string(R"({"PodUID":")") + pod +
                R"(","ContainerName":"c","ResourceName":")" + resource + R"(","DeviceIDs":{"0":[)" + ids +
                "]}}";
    sysfs_.Write("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
                 R"({"Data":{"PodDeviceEntries":[)" + entries_ + R"(]},"Checksum":1})");
  }
  // What Allocate has written.
  void Record(const std::vector<std::string>& slots) const {
    for (const std::string& slot : slots) {
      AllocationRecord record;
      record.resource = "a.io/roce";
      record.device_id = slot;
      record.siblings = slots;
      record.generation = 1;
      record.nccl_config = NcclConfigPolicy::kRequired;
      EXPECT_TRUE(WriteAllocation(root_, record));
    }
  }
  Result<Bindings> Bind(const std::string& pod, const std::vector<std::string>& slots,
                        const std::string& container = "c1") {
    return binder_.Bind({pod, container, slots, "ns/" + pod}, now_);
  }
  // The pod is attached: its journal entry is there.
  void Attach(const std::string& container, const Bindings& bindings) {
    JournalEntry entry;
    entry.key = {"net", container, "eth0"};
    entry.boot_id = *BootId(root_);
    for (const auto& [slot, device] : bindings) {
      AttachedDevice link;
      link.device = device;
      link.slot = slot;
      link.pod_name = "rail" + std::to_string(entry.devices.size());
      link.before.name = "x";
      entry.devices.push_back(std::move(link));
    }
    EXPECT_TRUE(Journal(root_).Write(entry));
  }

  FakeSysfs sysfs_;
  Root root_ = sysfs_.root();
  FakeMachine machine_;
  std::vector<std::vector<std::string>> vfs_;  // by rail
  std::shared_ptr<const inventory::Inventory> inventory_;
  std::vector<std::shared_ptr<const resources::ResourcePool>> pools_;
  std::vector<std::string> slots_;
  std::string entries_;
  // What the pod-resources API says.
  std::vector<kubelet::AllocatedDevices> listed_;
  Published<BindingView> view_;
  late_binding::Binder binder_{root_, view_,
                               [this] { return Result<std::vector<kubelet::AllocatedDevices>>(listed_); }};
  late_binding::Binder::Clock::time_point now_ = late_binding::Binder::Clock::now();
};

// An unreadable entry costs its own device, not the pool.
TEST_F(BinderTest, AnUnreadableEntryCostsItsOwnDevice) {
  Give("p0", {slots_[0]}, {});
  const auto first = Bind("p0", {slots_[0]}, "c0");
  ASSERT_TRUE(first);
  Attach("c0", *first);
  sysfs_.Write("/run/railhead/attachments/c0/net@eth0.json", "{");
  std::set<std::string> given;
  for (std::size_t i = 1; i < slots_.size(); ++i) {
    const std::string number = std::to_string(i);
    Give("p" + number, {slots_[i]}, {});
    const auto bound = Bind("p" + number, {slots_[i]}, "c" + number);
    ASSERT_TRUE(bound) << i << ": " << Describe(bound.error());
    Attach("c" + number, *bound);
    given.insert(bound->at(slots_[i]));
  }
  EXPECT_EQ(given.size(), slots_.size() - 1);
  EXPECT_FALSE(given.contains(first->at(slots_[0])));
}

TEST_F(BinderTest, TheVfOnTheSwitchOfTheGpuWhicheverItIs) {
  ASSERT_EQ(machine_.accelerators.size(), 8U);
  ASSERT_EQ(vfs_.size(), 4U);
  for (std::size_t gpu = 0; gpu < 8; ++gpu) {
    const std::string pod = "pod-" + std::to_string(gpu);
    Give(pod, {slots_[gpu]}, {machine_.accelerators[gpu]});
    const auto bound = Bind(pod, {slots_[gpu]}, pod);
    ASSERT_TRUE(bound) << Describe(bound.error());
    const auto& near = vfs_[gpu / 2];
    EXPECT_EQ(bound->at(slots_[gpu]), near[gpu % 2]) << "GPU " << gpu << ", the lowest free VF";
    Attach(pod, *bound);
    const auto info =
        ReadFile(root_.Path("/var/run/k8s.cni.cncf.io/devinfo/dp/a.io-roce-" + slots_[gpu] + "-device.json"));
    ASSERT_TRUE(info && *info);
    EXPECT_NE((*info)->find(R"("pci-address":")" + bound->at(slots_[gpu])), std::string::npos) << **info;
  }
}

TEST_F(BinderTest, OneOnEachRailNearTheGpus) {
  Give("p", {slots_[0], slots_[1]}, {machine_.accelerators[1], machine_.accelerators[6]});
  const auto bound = Bind("p", {slots_[1], slots_[0]});
  ASSERT_TRUE(bound) << Describe(bound.error());
  EXPECT_EQ(*bound, (Bindings{{slots_[0], vfs_[0][0]}, {slots_[1], vfs_[3][0]}}));
}

TEST_F(BinderTest, AcceleratorsOfADraDriver) {
  Give("p", {slots_[0]}, {});
  listed_ = {{"ns/other", "c", "gpu.example.com", {machine_.accelerators[0]}},
             {"ns/p", "c", "gpu.example.com", {machine_.accelerators[7]}}};
  const auto bound = Bind("p", {slots_[0]});
  ASSERT_TRUE(bound) << Describe(bound.error());
  EXPECT_EQ(bound->at(slots_[0]), vfs_[3][0]) << "kubelet's checkpoint has no devices of claims";
}

TEST_F(BinderTest, WithoutAcceleratorsTheRailsOrder) {
  Give("p", {slots_[5]}, {});
  const auto bound = Bind("p", {slots_[5]});
  ASSERT_TRUE(bound) << Describe(bound.error());
  EXPECT_EQ(bound->at(slots_[5]), vfs_[0][0]);
}

TEST_F(BinderTest, TwoPodsNeverGetTheSame) {
  std::set<std::string> given;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const std::string pod = "p" + std::to_string(i);
    Give(pod, {slots_[i]}, {machine_.accelerators[0]});
    const auto bound = Bind(pod, {slots_[i]}, pod);
    ASSERT_TRUE(bound) << Describe(bound.error());
    EXPECT_TRUE(given.insert(bound->at(slots_[i])).second) << "before its journal entry, it is reserved";
    if (i % 2 == 0) Attach(pod, *bound);
  }
  EXPECT_EQ(given.size(), 12U) << "as many slots as devices";
}

// The runtime retries a failed ADD with another sandbox. It makes another one after a reboot too.
TEST_F(BinderTest, AnotherSandboxOfTheSameSlot) {
  Give("p", {slots_[0]}, {machine_.accelerators[7]});
  const auto first = Bind("p", {slots_[0]}, "c1");
  ASSERT_TRUE(first);
  const auto again = Bind("p", {slots_[0]}, "c2");
  ASSERT_TRUE(again) << Describe(again.error());
  EXPECT_EQ(*again, *first) << "its own reservation is no obstacle";
  Attach("c2", *again);
  const auto third = Bind("p", {slots_[0]}, "c3");
  ASSERT_TRUE(third) << Describe(third.error());
  EXPECT_NE(third->at(slots_[0]), first->at(slots_[0])) << "one on the host before one to wait for";
  EXPECT_EQ(third->at(slots_[0]), vfs_[3][1]);
}

TEST_F(BinderTest, ReservationsEnd) {
  Give("p", {slots_[0]}, {machine_.accelerators[0]});
  Give("q", {slots_[1]}, {machine_.accelerators[0]});
  const auto first = Bind("p", {slots_[0]});
  now_ += std::chrono::seconds(61);
  const auto second = Bind("q", {slots_[1]});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->at(slots_[1]), first->at(slots_[0])) << "its ADD has long failed";
}

// A pod that came and went within the minute frees its reservation.
TEST_F(BinderTest, ReservationsEndWithTheirPods) {
  Give("gone", {slots_[0], slots_[1]}, {machine_.accelerators[0], machine_.accelerators[6]});
  const auto gone = Bind("gone", {slots_[0], slots_[1]});
  ASSERT_TRUE(gone) << Describe(gone.error());
  EXPECT_EQ(gone->at(slots_[1]), vfs_[3][0]);
  Give("p", {slots_[2]}, {machine_.accelerators[6]});
  const auto meanwhile = Bind("p", {slots_[2]});
  ASSERT_TRUE(meanwhile) << Describe(meanwhile.error());
  EXPECT_EQ(meanwhile->at(slots_[2]), vfs_[3][1]) << "kubelet still has the first pod";

  entries_.clear();
  Give("q", {slots_[3]}, {machine_.accelerators[6]});
  const auto next = Bind("q", {slots_[3]});
  ASSERT_TRUE(next) << Describe(next.error());
  EXPECT_EQ(next->at(slots_[3]), vfs_[3][0]);
}

// kubelet cannot forget a pod that it never listed. Reservations of such pods end after the minute.
TEST_F(BinderTest, ReservationsOfPodsThatWereNeverListed) {
  Record({slots_[0]});
  Give("p", {slots_[1]}, {machine_.accelerators[0]});
  const auto unlisted = Bind("", {slots_[0]});
  const auto other = Bind("p", {slots_[1]});
  ASSERT_TRUE(unlisted && other);
  EXPECT_NE(other->at(slots_[1]), unlisted->at(slots_[0]));
}

// A pod that names another pod's slot in its network gets nothing, and neither does one without a UID.
TEST_F(BinderTest, ASlotIsForThePodToWhichKubeletGaveIt) {
  Record({slots_[0]});
  Give("owner", {slots_[1]}, {machine_.accelerators[0]});
  Give("asker", {slots_[2]}, {machine_.accelerators[0]});
  const auto ids = [](const Result<Bindings>& bound) { return bound ? bound->size() : 0; };
  for (const char* uid : {"owner", "asker", ""}) {
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string owner = i == 0 ? "" : i == 1 ? "owner" : "asker";
      const auto alone = Bind(uid, {slots_[i]});
      const auto together = Bind(uid, {slots_[0], slots_[i]});
      const bool allowed = owner.empty() || owner == uid;
      EXPECT_EQ(ids(alone), allowed ? 1U : 0U) << "pod '" << uid << "', slot of '" << owner << "'";
      EXPECT_EQ(ids(together) > 0, allowed);
      if (allowed) continue;
      for (const auto* refused : {&alone, &together}) {
        EXPECT_EQ(refused->error().code, ErrorCode::kPermission);
        EXPECT_NE(refused->error().message.find(slots_[i]), std::string::npos) << refused->error().message;
      }
    }
  }
  sysfs_.Write("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{");
  EXPECT_FALSE(Bind("owner", {slots_[1]})) << "whose it is, is not known";
}

class BurstTest : public BinderTest {
 protected:
  BurstTest() : BinderTest(13) {}
};

// All pods of a node come at once, as after a reboot. kubelet answers one call at a time and needs 500 ms for
// each. At the same time a device becomes unhealthy.
TEST_F(BurstTest, FiftyPodsAtOnceAndAChangeOfHealth) {
  constexpr std::size_t kPods = 50;
  constexpr auto kGenerous = std::chrono::seconds(40);
  for (std::size_t i = 0; i < kPods; ++i) Give("p" + std::to_string(i), {slots_[i]}, {});
  const std::string& sick = vfs_[0][0];
  std::mutex kubelet;
  std::mutex mutex;
  std::condition_variable changed;
  bool asked = false;
  bool updated = false;
  Published<BindingView> views;
  late_binding::Binder binder(root_, views, [&]() -> Result<std::vector<kubelet::AllocatedDevices>> {
    const std::lock_guard one_at_a_time(kubelet);
    std::unique_lock lock(mutex);
    asked = true;
    changed.notify_all();
    EXPECT_TRUE(changed.wait_for(lock, kGenerous, [&] { return updated; })) << "the change of health waits";
    std::condition_variable never;
    never.wait_for(lock, std::chrono::milliseconds(500), [] { return false; });
    return std::vector<kubelet::AllocatedDevices>{};
  });
  const topology::TopologyConfig config;
  const auto topology = *topology::Topology::Read(root_, *inventory_, config);
  const auto view = [&](std::set<std::string> unhealthy) {
    return BindingView{pools_, std::move(unhealthy), topology,
                       std::make_shared<const topology::AcceleratorIds>(IdsOf(root_, *topology, config))};
  };
  views.Set(view({}));
  auto server = StartBindServer(root_, [&](const BindRequest& request) { return binder.Bind(request); });
  ASSERT_TRUE(server) << Describe(server.error());
  std::thread health([&] {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, kGenerous, [&] { return asked; });
    lock.unlock();
    views.Set(view({sick}));
    lock.lock();
    updated = true;
    changed.notify_all();
  });
  std::vector<Result<Bindings>> bound(kPods);
  std::vector<std::thread> adds;
  for (std::size_t i = 0; i < kPods; ++i) {
    adds.emplace_back([&, i] {
      const std::string pod = "p" + std::to_string(i);
      bound[i] = BindSlots(root_, {pod, pod, {slots_[i]}, "ns/" + pod});
    });
  }
  for (auto& add : adds) add.join();
  health.join();
  std::set<std::string> devices;
  for (std::size_t i = 0; i < kPods; ++i) {
    ASSERT_TRUE(bound[i]) << i << ": " << Describe(bound[i].error());
    devices.insert(bound[i]->at(slots_[i]));
  }
  EXPECT_EQ(devices.size(), kPods) << "a device each";
  EXPECT_FALSE(devices.contains(sick));
}

// Each caller gets an answer that kubelet gave after the call. Many simultaneous callers do not cause as many
// calls to kubelet.
TEST(SharedAnswerTest, IsNeverOlderThanTheQuestionAndSharedByAll) {
  std::atomic<int> begun{0};
  std::atomic<int> at_once{0};
  late_binding::SharedAnswer shared([&]() -> late_binding::SharedAnswer::Answer {
    EXPECT_EQ(++at_once, 1);
    const int number = ++begun;
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    --at_once;
    return std::vector<kubelet::AllocatedDevices>{{std::to_string(number), "", "", {}}};
  });
  constexpr int kThreads = 16;
  constexpr int kQuestions = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kQuestions; ++i) {
        const int before = begun;
        const auto answer = shared.Get();
        ASSERT_TRUE(answer);
        EXPECT_GT(std::stoi(answer->front().pod), before);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LT(begun, kThreads * kQuestions);
}

TEST_F(BinderTest, UnhealthyDevicesAreLeftOut) {
  Give("p", {slots_[0]}, {machine_.accelerators[0]});
  Refresh({vfs_[0][0], vfs_[0][1], vfs_[0][2]});
  const auto bound = Bind("p", {slots_[0]});
  ASSERT_TRUE(bound);
  EXPECT_NE(bound->at(slots_[0]).substr(0, 7), vfs_[0][0].substr(0, 7)) << "not of that PF";
  std::set<std::string> all;
  for (const auto& vfs : vfs_) all.insert(vfs.begin(), vfs.end());
  Refresh(all);
  now_ += std::chrono::seconds(61);
  const auto none = Bind("p", {slots_[0]});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kBusy) << "try again later";
}

// Before the daemon's first discovery: kubelet tries again.
TEST_F(BinderTest, BeforeTheFirstLook) {
  Give("p", {slots_[0]}, {});
  const Published<BindingView> none;
  late_binding::Binder young(root_, none);
  const auto bound = young.Bind({"p", "c1", {slots_[0]}});
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code, ErrorCode::kBusy) << Describe(bound.error());
}

TEST_F(BinderTest, SlotsThatAreNone) {
  const auto unallocated = Bind("p", {"slot-x-n0-000"});
  ASSERT_FALSE(unallocated);
  EXPECT_NE(Describe(unallocated.error()).find("never allocated"), std::string::npos);
  AllocationRecord record;
  record.resource = "a.io/pf";
  record.device_id = "slot-y";
  record.siblings = {"slot-y"};
  ASSERT_TRUE(WriteAllocation(root_, record));
  const auto early = Bind("p", {"slot-y"});
  ASSERT_FALSE(early);
  EXPECT_NE(Describe(early.error()).find("a.io/pf"), std::string::npos);
}

TEST_F(BinderTest, OverItsSocket) {
  EXPECT_EQ(BindSlots(root_, {"p", "c1", {slots_[0]}}).error().code, ErrorCode::kBusy) << "nobody there";
  Give("p", {slots_[0]}, {machine_.accelerators[2]});
  std::atomic<int> asked{0};
  {
    auto server = StartBindServer(root_, [&](const BindRequest& request) {
      ++asked;
      return binder_.Bind(request);
    });
    ASSERT_TRUE(server) << Describe(server.error());
    const auto bound = BindSlots(root_, {"p", "c1", {slots_[0]}});
    ASSERT_TRUE(bound) << Describe(bound.error());
    EXPECT_EQ(*bound, (Bindings{{slots_[0], vfs_[1][0]}}));
    const auto refused = BindSlots(root_, {"p", "c1", {"slot-other"}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_NE(refused.error().message.find("slot-other"), std::string::npos) << refused.error().message;
    EXPECT_FALSE(refused.error().hint.empty());
    // A second daemon takes over. A dead daemon's socket does not stop it.
    auto later = StartBindServer(root_, [&](const BindRequest& request) { return binder_.Bind(request); });
    ASSERT_TRUE(later) << Describe(later.error());
    EXPECT_TRUE(BindSlots(root_, {"p", "c2", {slots_[0]}}));
  }
  EXPECT_GE(asked, 2);
  EXPECT_EQ(BindSlots(root_, {"p", "c1", {slots_[0]}}).error().code, ErrorCode::kBusy);
}

// The new daemon of an update ends in any way. The old one has the resource again, and also the pods' slots.
TEST_F(BinderTest, TheEarlierDaemonTakesTheSocketBack) {
  Give("p", {slots_[0]}, {});
  std::atomic<int> earlier_served{0};
  const auto start = [&](std::atomic<int>* served) {
    return StartBindServer(root_, [this, served](const BindRequest& request) {
      ++*served;
      return binder_.Bind(request);
    });
  };
  const auto earlier = start(&earlier_served);
  ASSERT_TRUE(earlier) << Describe(earlier.error());
  const std::string path = paths::BindSocket(root_);
  for (const bool removed : {false, true}) {
    {
      std::atomic<int> later_served{0};
      const auto later = start(&later_served);
      ASSERT_TRUE(later) << Describe(later.error());
      EXPECT_TRUE(BindSlots(root_, {"p", "c1", {slots_[0]}}));
      EXPECT_EQ(earlier_served, 0) << "two daemons must not answer in turns";
    }
    if (removed) {
      ASSERT_TRUE(RemoveFile(path));
    }
    const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    auto bound = BindSlots(root_, {"p", "c1", {slots_[0]}});
    while (!bound && std::chrono::steady_clock::now() < patience) {
      std::this_thread::yield();
      bound = BindSlots(root_, {"p", "c1", {slots_[0]}});
    }
    ASSERT_TRUE(bound) << Describe(bound.error());
    while (earlier_served == 0 && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    EXPECT_EQ(earlier_served.exchange(0), 1);
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
  }
}

// A client that connects and sends nothing does not block others for ever. Nonsense gets an answer.
TEST_F(BinderTest, BadRequests) {
  for (const char* line : {"", "{", "[]", R"({"version":1})", R"({"version":2,"podUid":"p"})",
                           R"({"version":1,"podUid":"p","containerId":"c","slots":[]})",
                           R"({"version":1,"podUid":"p","containerId":"c","slots":["../../etc"]})"}) {
    const auto request = ParseBindRequest(line);
    if (request) {
      EXPECT_FALSE(binder_.Bind(*request)) << line;
    } else {
      EXPECT_FALSE(request.error().message.empty());
    }
  }
  EXPECT_FALSE(ParseBindAnswer("{}", {"p", "c", {"slot-1"}}));
  EXPECT_FALSE(ParseBindAnswer(R"({"devices":{"slot-1":"eth0"}})", {"p", "c", {"slot-1"}}));
}

}  // namespace
}  // namespace railhead::testing

// ADDs for devices that others still have: devices not restored yet, late DELs, reused container IDs, and
// simultaneous calls for the same devices.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "cni/attachment/nccl_step.h"
#include "cni/protocol/cni_result.h"
#include "cni/state/paths.h"
#include "netns/base/state_folder.h"
#include "tests/support/plugin/locked_kernel.h"
#include "tests/support/plugin/rails_fixture.h"

namespace railhead::testing {
namespace {

using std::chrono_literals::operator""s;

constexpr auto kGenerous = 120s;

class PluginAcquireTest : public RailsFixture {
 protected:
  // An ADD in another thread.
  class BackgroundAdd {
   public:
    BackgroundAdd(attachment::RailheadPlugin& plugin, CniRequest request)
        : thread_([this, &plugin, request = std::move(request)] {
            result_.emplace(plugin.Add(request));
            done_ = true;
          }) {}
    BackgroundAdd(const BackgroundAdd&) = delete;
    BackgroundAdd& operator=(const BackgroundAdd&) = delete;
    ~BackgroundAdd() {
      if (thread_.joinable()) thread_.join();
    }
    [[nodiscard]] bool done() const { return done_; }
    const Result<std::string>& Join() {
      thread_.join();
      return *result_;
    }

   private:
    std::optional<Result<std::string>> result_;
    std::atomic<bool> done_ = false;
    std::thread thread_;  // last: it uses the others
  };

  [[nodiscard]] Call Single(const std::string& container, const std::string& netns, int rail = 0,
                            const std::string& more = "") const {
    return {.network = "rail" + std::to_string(rail),
            .container = container,
            .netns = netns,
            .config = R"("deviceID":")" + Bdf(rail) + R"(","mtu":4200,)" +
                      Ipam("10." + std::string(rail == 0 ? "100" : "200") + ".0.77/24") + more};
  }
  // Until the ADD has looked at the device so often that it must be waiting.
  void AwaitManyCalls(const BackgroundAdd& adding) {
    const int first = locked_.Locked([&] { return kernel_.calls(); });
    const auto limit = std::chrono::steady_clock::now() + kGenerous;
    while (!adding.done() && std::chrono::steady_clock::now() < limit) {
      if (locked_.Locked([&] { return kernel_.calls(); }) > first + 40) return;
      std::this_thread::yield();
    }
    ADD_FAILURE() << "ADD does not wait";
  }

  LockedKernel locked_{kernel_};
  attachment::RailheadPlugin shared_{sysfs_.root(), locked_};
};

// Starts an ADD before the DEL of the VF's last pod has finished, as kubelet does. (A peer fails 3 of 10 such
// pods, and kubelet backs off.)
TEST_F(PluginAcquireTest, AddWaitsForTheDelOfTheLastPod) {
  const auto last = Single("c1", pod_);
  const std::string other = MakePod("pod2");
  const auto next = Single("c2", other, 0, R"(,"previousDelTimeoutSeconds":120)");
  ASSERT_TRUE(Add(last));
  Call del = last;
  del.command = "DEL";
  const CniRequest del_request = Request(del);
  BackgroundAdd adding(shared_, Request(next));
  AwaitManyCalls(adding);
  const auto deleted = shared_.Del(del_request);
  EXPECT_TRUE(deleted) << Describe(deleted.error());
  const auto& added = adding.Join();
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(OurLinks(other), std::vector<std::string>{"net1"});
  const auto checked = Check(next);
  EXPECT_TRUE(checked) << Describe(checked.error());
}

// ADD gets all devices or none, also while it waits: one of three is not restored yet.
TEST_F(PluginAcquireTest, AddOfSeveralWaitsForOne) {
  const auto last = Single("c0", MakePod("pod0"), 1);
  ASSERT_TRUE(Add(last));
  Call del = last;
  del.command = "DEL";
  const CniRequest del_request = Request(del);
  Call all = AllRails();
  all.config += R"(,"previousDelTimeoutSeconds":120)";
  BackgroundAdd adding(shared_, Request(all));
  AwaitManyCalls(adding);
  locked_.Locked([&] { EXPECT_EQ(OurLinks(pod_), std::vector<std::string>{}); });
  EXPECT_TRUE(shared_.Del(del_request));
  const auto& added = adding.Join();
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_TRUE(Check(AllRails()));
}

// After its last name is gone, a namespace gives its devices back from a work queue, some time later.
TEST_F(PluginAcquireTest, AddWaitsForADyingNamespace) {
  const std::string other = MakePod("pod2");
  const std::string limbo = kernel_.AddNamespace("limbo");
  const auto last = Single("c1", pod_);
  ASSERT_TRUE(Add(last));
  FakeNetdev& netdev = *kernel_.state().OfFunction(Bdf(0));
  ASSERT_EQ(kernel_.state().Move(netdev, limbo, "net1", {}), 0);
  kernel_.RemoveNamespace(pod_);
  const auto next = Single("c2", other, 0, R"(,"previousDelTimeoutSeconds":120)");
  BackgroundAdd adding(shared_, Request(next));
  AwaitManyCalls(adding);
  locked_.Locked([&] { kernel_.RemoveNamespace(limbo); });
  const auto& added = adding.Join();
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(HeldAddresses(), "c2@net1") << "the dead pod's address is given back";
  ASSERT_TRUE(Del(next));
  EXPECT_EQ(kernel_.state().Find(kHost, "pf0v0")->link.mtu, 1500) << "as before the first of the two";
}

// The same without a journal entry: another program attached the device, or the journal did not exist yet.
TEST_F(PluginAcquireTest, AddWaitsForADeviceThatNobodyKnows) {
  const std::string limbo = kernel_.AddNamespace("limbo");
  ASSERT_EQ(kernel_.state().Move(*kernel_.state().OfFunction(Bdf(0)), limbo, "pf0v0", {}), 0);
  kernel_.Sync();
  BackgroundAdd adding(shared_, Request(Single("c1", pod_, 0, R"(,"previousDelTimeoutSeconds":120)")));
  AwaitManyCalls(adding);
  locked_.Locked([&] { kernel_.RemoveNamespace(limbo); });
  const auto& added = adding.Join();
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(OurLinks(pod_), std::vector<std::string>{"net1"});
}

TEST_F(PluginAcquireTest, WaitingIsBounded) {
  ASSERT_TRUE(Add(Single("c1", pod_)));
  const std::string other = MakePod("pod2");
  const auto before = World();
  const auto added = Add(Single("c2", other, 0, R"(,"previousDelTimeoutSeconds":1)"));
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniTryAgainLater);
  EXPECT_NE(added.error().message.find("container c1"), std::string::npos) << added.error().message;
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_TRUE(Check(Single("c1", pod_)));
}

// kubelet makes a new sandbox for a pod whose old one has ended, and the runtime's DEL of that comes later.
TEST_F(PluginAcquireTest, TheNextSandboxOfTheSamePodGetsItsDevices) {
  permissions_ = R"(,"devices":"any")";
  WriteRails();
  const auto of_pod = [&](const std::string& uid, Call call) {
    call.args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=d;K8S_POD_NAME=train-0;K8S_POD_UID=" + uid;
    std::filesystem::create_directories(sysfs_.directory() + "/var/lib/kubelet/pods/" + uid);
    return call;
  };
  const std::string next = MakePod("pod2");
  const auto both = World();
  Call old = AllRails();
  old.netns = pod_;
  old = of_pod("uid-1", old);
  const auto added = Add(old);
  ASSERT_TRUE(added) << Describe(added.error());

  const auto attached = World();
  const Call other_pod = of_pod("uid-2", Single("c2", next));
  const Call same_pod = of_pod("uid-1", Single("c2", next));
  const auto refused = [&](const Call& call) {
    const auto answer = Add(call);
    ASSERT_FALSE(answer);
    EXPECT_EQ(CniCodeOf(answer.error().code), kCniTryAgainLater) << Describe(answer.error());
    EXPECT_EQ(ChangedSince(attached), "");
  };
  refused(other_pod);
  refused(Single("c2", next));  // of nobody's pod
  kernel_.SetHasProcesses(pod_, true);
  refused(same_pod);
  kernel_.SetHasProcesses(pod_, false);

  const auto again = Add(same_pod);
  ASSERT_TRUE(again) << Describe(again.error());
  EXPECT_EQ(OurLinks(pod_), std::vector<std::string>{}) << "the old attachment is restored as a whole";
  EXPECT_EQ(OurLinks(next), std::vector<std::string>{"net1"});
  EXPECT_EQ(HeldAddresses(), "c2@net1");
  EXPECT_TRUE(Check(same_pod));
  EXPECT_TRUE(Del(old)) << "the late DEL";
  EXPECT_TRUE(Check(same_pod));
  ASSERT_TRUE(Del(same_pod));
  EXPECT_EQ(ChangedSince(both), "");
}

// A DEL that waits for its namespace holds the devices' locks.
TEST_F(PluginAcquireTest, WaitingForALockIsBounded) {
  const auto lock = FileLock::Acquire(paths::Lock(sysfs_.root(), Bdf(0)), 10s);
  ASSERT_TRUE(lock);
  const auto before = World();
  const auto added = Add(Single("c2", pod_, 0, R"(,"previousDelTimeoutSeconds":0)"));
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniTryAgainLater);
  EXPECT_NE(Describe(added.error()).find(Bdf(0)), std::string::npos) << Describe(added.error());
  EXPECT_NE(Describe(added.error()).find("DEL"), std::string::npos) << Describe(added.error());
  EXPECT_EQ(ChangedSince(before), "");
}

// Also where ADD finishes an earlier attachment first: that must not exceed the caller's time limit.
TEST_F(PluginAcquireTest, WaitingForADyingNamespaceIsBounded) {
  const std::string limbo = kernel_.AddNamespace("limbo");
  ASSERT_TRUE(Add(Single("c1", pod_)));
  ASSERT_EQ(kernel_.state().Move(*kernel_.state().OfFunction(Bdf(0)), limbo, "net1", {}), 0);
  kernel_.RemoveNamespace(pod_);
  const std::string other = MakePod("pod2");
  const int first = kernel_.calls();
  const auto added = Add(Single("c2", other, 0, R"(,"previousDelTimeoutSeconds":0)"));
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniTryAgainLater);
  EXPECT_NE(added.error().message.find("has not come back"), std::string::npos) << added.error().message;
  EXPECT_LT(kernel_.calls() - first, 100) << "it went on looking";
  EXPECT_EQ(HeldAddresses(), "c1@net1") << "kept as long as the device may have it";
}

TEST_F(PluginAcquireTest, LateDelDoesNotTouchTheNextPod) {
  ASSERT_TRUE(Add(Single("c1", pod_)));
  const std::string old = pod_;
  kernel_.RemoveNamespace(pod_);
  pod_ = MakePod("pod2");
  ASSERT_TRUE(Add(Single("c2", pod_)));
  const auto before = World();
  const auto late = Del(Single("c1", old));
  EXPECT_TRUE(late) << Describe(late.error());
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_TRUE(Del(Single("c1", pod_))) << "with the path of the living one";
  EXPECT_EQ(ChangedSince(before), "");
  const auto checked = Check(Single("c2", pod_));
  EXPECT_TRUE(checked) << Describe(checked.error());
}

// After a reset, a runtime reuses the same container ID.
TEST_F(PluginAcquireTest, ContainerIdReused) {
  ASSERT_TRUE(Add(Single("c1", pod_)));
  kernel_.RemoveNamespace(pod_);
  pod_ = MakePod("pod1");
  const auto again = Add(Single("c1", pod_));
  ASSERT_FALSE(again) << "the specification: DEL comes first";
  EXPECT_EQ(CniCodeOf(again.error().code), kCniExists);
  ASSERT_TRUE(Del(Single("c1", pod_)));
  const auto added = Add(Single("c1", pod_));
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_TRUE(Check(Single("c1", pod_)));
}

// Defect of sriov-cni (#219, #220): it took any error of a namespace lookup for the pod's death. It then gave
// that pod's VF to another one.
TEST_F(PluginAcquireTest, AnErrorIsNotTheDeathOfAPod) {
  ASSERT_TRUE(Add(Single("c1", pod_)));
  const std::string other = MakePod("pod2");
  const auto next = Single("c2", other);
  const auto before = World();
  for (const int error : {EIO, EMFILE, EACCES}) {
    kernel_.FailEvery("OpenNetns", error, pod_);
    EXPECT_FALSE(Add(next)) << error;
    kernel_.StopFailing();
    ASSERT_EQ(ChangedSince(before), "") << error;
  }
  const int first = kernel_.calls();
  EXPECT_FALSE(Add(next));
  const int calls = kernel_.calls() - first;
  ASSERT_GT(calls, 2);
  for (int nth = 1; nth <= calls; ++nth) {
    kernel_.FailCall(nth, EIO);  // once: the next look would have shown it alive
    EXPECT_FALSE(Add(next));
    kernel_.StopFailing();
    ASSERT_EQ(ChangedSince(before), "") << "call " << nth << "\n" << kernel_.Log();
  }
  EXPECT_TRUE(Check(Single("c1", pod_)));
}

// The entry of a killed ADD of several devices: an ADD for one of them restores all.
TEST_F(PluginAcquireTest, KilledAttachmentOfSeveralIsFinishedByWhoWantsOne) {
  const std::string second = MakePod("pod2");
  const std::string third = MakePod("pod3");
  const auto before = World();
  const int calls = CountAdd(AllRails(), 85);
  ASSERT_TRUE(Kill(AllRails(), calls / 2));
  ASSERT_TRUE(Add(Single("c2", second, 1)));
  EXPECT_EQ(OurLinks(pod_), std::vector<std::string>{});
  ASSERT_TRUE(Add(Single("c3", third, 0)));
  const auto world = World();
  ASSERT_TRUE(Del(AllRails()));
  EXPECT_EQ(ChangedSince(world), "");
  ASSERT_TRUE(Del(Single("c2", second, 1)));
  ASSERT_TRUE(Del(Single("c3", third, 0)));
  EXPECT_EQ(ChangedSince(before), "");
}

// Each of two ADDs wants the other's devices. They would wait for each other if they locked one by one.
TEST_F(PluginAcquireTest, OverlappingSetsDoNotLockEachOther) {
  const auto before_pods = [this] { return OurLinks(kHost).size(); };
  const std::size_t on_host = before_pods();
  struct Player {
    CniRequest add;
    CniRequest del;
    bool failed = false;
  };
  std::vector<std::unique_ptr<Player>> players;
  const std::vector<std::vector<std::string>> sets = {
      {Bdf(0), Bdf(1)}, {Bdf(1), Bdf(2)}, {Bdf(2), Bdf(0)}, {Bdf(2), Bdf(1), Bdf(0)}};
  for (std::size_t i = 0; i < sets.size(); ++i) {
    Call call{.network = "rails",
              .container = "p" + std::to_string(i),
              .netns = MakePod("player" + std::to_string(i)),
              .config = Devices(sets[i]) + R"(,"ipam":{},"previousDelTimeoutSeconds":200)"};
    auto player = std::make_unique<Player>();
    player->add = Request(call);
    call.command = "DEL";
    player->del = Request(call);
    players.push_back(std::move(player));
  }
  std::vector<std::thread> threads;
  for (const auto& player : players) {
    threads.emplace_back([this, &player] {
      for (int round = 0; round < 5 && !player->failed; ++round) {
        const bool added = shared_.Add(player->add).has_value();
        const bool deleted = shared_.Del(player->del).has_value();
        player->failed = !added || !deleted;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& player : players) EXPECT_FALSE(player->failed) << player->add.container_id;
  EXPECT_EQ(before_pods(), on_host);
  EXPECT_EQ(Files(), "");
}

// The plugin and railheadd are built by different compilers and take the same lock. The number is FNV-1a of
// the container id, worked out here by itself.
TEST(SandboxLockTest, ItsNameIsTheSameInEveryProgram) {
  const TempRoot temp;
  std::set<std::uint64_t> numbers;
  for (int i = 0; i < 256; ++i) {
    const std::string container = "c" + std::to_string(i * 7919) + std::string(i % 70, 'f');
    std::uint64_t hash = 14695981039346656037U;
    for (const char c : container) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    numbers.insert(hash % 64);
    const auto held = attachment::LockSandbox(temp.root(), container, 0s);
    ASSERT_TRUE(held) << Describe(held.error());
    const auto second =
        FileLock::Acquire(paths::Lock(temp.root(), "sandbox-" + std::to_string(hash % 64)), 0s);
    ASSERT_FALSE(second) << container;
    EXPECT_EQ(second.error().code, ErrorCode::kTimeout);
  }
  EXPECT_GT(numbers.size(), 50U);
}

}  // namespace
}  // namespace railhead::testing

// railheadd and kubelet: a refused registration, and restarts of either at every step of their protocol.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "netns/base/files.h"
#include "tests/support/daemon/restart_node.h"
#include "tests/support/eventually.h"

namespace railhead::testing {
namespace {

TEST_F(RestartNode, ARefusalIsReportedAndRetried) {
  std::atomic<bool> refuse{true};
  KubeletOptions options;
  options.refuse = [&](const std::string& resource) {
    return refuse && resource == kRail1 ? "not " + resource + " today" : "";
  };
  const auto kubelet = MakeKubelet(std::move(options));
  ASSERT_TRUE(kubelet->Start());
  const auto daemon = RunDaemon();
  EXPECT_TRUE(Logs(*daemon, "not a.io/rail1 today"));
  EXPECT_TRUE(kubelet->Devices(kRail0, 4, Soon())) << "the others are not concerned";
  EXPECT_EQ(kubelet->Registrations(kRail1), 0);
  refuse = false;
  ExpectWhole(kubelet.get(), "when it is taken");
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

const char* NameOf(Step step) {
  static constexpr const char* kNames[] = {"Register called",
                                           "dialled back",
                                           "Register answered",
                                           "a list was taken",
                                           "preferring",
                                           "preferred",
                                           "allocating",
                                           "allocated",
                                           "before PreStartContainer",
                                           "after PreStartContainer"};
  static_assert(std::size(kNames) == kSteps);
  return kNames[static_cast<int>(step)];
}

// Calls `act` once, on a thread of its own, when kubelet comes to the N-th occurrence of a step. The kubelet
// thread at that step goes on once `act` has begun, since a restart waits for that thread.
class Ambush {
 public:
  ~Ambush() { Finish(); }

  void Lay(Step step, unsigned skip, std::function<void()> act) {
    Finish();
    const std::lock_guard<std::mutex> lock(mutex_);
    step_ = step;
    left_ = skip + 1;
    act_ = std::move(act);
    sprung_ = false;
  }
  [[nodiscard]] bool Sprung() const { return sprung_; }
  // Whether kubelet came to the step. Waits until `act` is done.
  bool Finish() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      left_ = 0;
    }
    if (thread_.joinable()) thread_.join();
    return sprung_;
  }
  void At(Step step) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (step != step_ || left_ == 0 || --left_ > 0) return;
    sprung_ = true;
    bool begun = false;
    thread_ = std::thread([this, &begun] {
      {
        const std::lock_guard<std::mutex> begin(mutex_);
        begun = true;
        changed_.notify_all();
      }
      act_();
    });
    changed_.wait(lock, [&] { return begun; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Step step_ = Step::kRegisterCalled;
  unsigned left_ = 0;
  std::function<void()> act_;
  std::atomic<bool> sprung_{false};
  std::thread thread_;
};

class RestartTest : public RestartNode {
 protected:
  void SetUp() override {
    KubeletOptions options;
    options.at = [this](Step step, const std::string& /*resource*/) { ambush_.At(step); };
    kubelet_ = MakeKubelet(std::move(options));
    ASSERT_TRUE(kubelet_->Start());
    StartDaemon();
    ExpectWhole(kubelet_.get(), "at the start");
  }

  void StartDaemon() { daemon_ = RunDaemon({"--resync-interval", "3600", "--reconcile-interval", "0"}); }

  void RestartKubelet(bool kill) {
    if (kill) {
      kubelet_->Kill();
    } else {
      kubelet_->Stop();
    }
    const auto started = kubelet_->Start();
    EXPECT_TRUE(started) << Describe(started.error());
  }

  static int Rounds(int most) {
    const bool all = std::getenv("RAILHEAD_TESTS_ALL") != nullptr;
    return all || most < 100 ? most : most / 2;
  }

  // Brings kubelet to `step`, or past it if the ambush intervenes.
  void Provoke(Step step) {
    if (step <= Step::kListTaken) return RestartKubelet(false);
    const std::string uid = AdmitSomePod(kubelet_.get());
    if (step < Step::kPreStarting) return;
    // PreStartContainer refuses the pod, as nothing is attached. The test only needs an answer.
    if (!uid.empty()) (void)kubelet_->PreStartPod(uid, "app");
  }

  // One round for each step: `act` happens there, and all must be well in the end.
  int Sweep(int rounds, const std::function<void()>& act, const char* what) {
    int sprung = 0;
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
      const Step step = static_cast<Step>(round % kSteps);
      while (Free(kRail0) < 2 || Free(kRail1) < 2 || Free(kPlain) < 2) RemoveSomePod(kubelet_.get());
      ambush_.Lay(step, step <= Step::kListTaken ? Random(3) : 0, act);
      Provoke(step);
      // kubelet comes to these steps later, once for each resource at least.
      if (step <= Step::kListTaken) EXPECT_TRUE(Eventually([&] { return ambush_.Sprung(); }));
      sprung += ambush_.Finish() ? 1 : 0;
      ExpectWhole(kubelet_.get(),
                  std::string(what) + " when " + NameOf(step) + ", round " + std::to_string(round));
    }
    return sprung;
  }

  std::unique_ptr<Process> daemon_;
  Ambush ambush_;
  std::unique_ptr<DeviceManager> kubelet_;  // first to go: it calls the ambush
};

TEST_F(RestartTest, OfKubeletAtEveryStep) {
  const int rounds = Rounds(200);
  const int sprung = Sweep(
      rounds, [this] { RestartKubelet(false); }, "kubelet stopped");
  EXPECT_GT(sprung, rounds / 2) << "too few restarts have come about to say anything";
  EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
  EXPECT_EQ(OurSockets(), 0U);
}

TEST_F(RestartTest, OfAKilledKubeletAtEveryStep) {
  const int rounds = Rounds(100);
  const int sprung = Sweep(
      rounds, [this] { RestartKubelet(true); }, "kubelet killed");
  EXPECT_GT(sprung, rounds / 2);
  EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
  EXPECT_EQ(OurSockets(), 0U);
}

TEST_F(RestartTest, OfAKilledRailheaddAtEveryStep) {
  const int rounds = Rounds(40);
  const auto again = [this] {
    daemon_->Kill();
    StartDaemon();
  };
  const int sprung = Sweep(rounds, again, "railheadd killed");
  EXPECT_GT(sprung, rounds / 2);
  EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
  EXPECT_EQ(OurSockets(), 0U);
}

TEST_F(RestartTest, OfAStoppedRailheaddAtEveryStep) {
  const int rounds = Rounds(30);
  const auto again = [this] {
    EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
    StartDaemon();
  };
  const int sprung = Sweep(rounds, again, "railheadd stopped");
  EXPECT_GT(sprung, rounds / 2);
  EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
  EXPECT_EQ(OurSockets(), 0U);
}

// Both at once, as when a node's services are all restarted.
TEST_F(RestartTest, OfBothAtOnce) {
  const int rounds = Rounds(20);
  const auto both = [this] {
    std::thread other([this] {
      daemon_->Kill();
      StartDaemon();
    });
    RestartKubelet(Random(2) == 0);
    other.join();
  };
  EXPECT_GT(Sweep(rounds, both, "both killed"), rounds / 2);
  EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
  EXPECT_EQ(OurSockets(), 0U);
}

}  // namespace
}  // namespace railhead::testing

// Two railheadd on one node, as during a rolling update: the new one takes over and the old one stands by. If
// the new one dies, the old one takes the resources back.
#include <atomic>
#include <csignal>
#include <map>
#include <string>

#include "netns/base/files.h"
#include "tests/support/daemon/restart_node.h"
#include "tests/support/eventually.h"

namespace railhead::testing {
namespace {

enum class Kubelet {
  kAsItIs,    // the end of one stream touches the other plugin of the same name: Kubernetes 1.36
  kRepaired,  // it does not
};

class TwoDaemonsTest : public RestartNode, public ::testing::WithParamInterface<Kubelet> {
 protected:
  void SetUp() override {
    most_streams_ = 3;
    KubeletOptions options;
    options.repaired_handover = GetParam() == Kubelet::kRepaired;
    options.at = [this](Step step, const std::string& resource) {
      if (step != Step::kRegisterAnswered || resource != kPlain || !answers_late_) return;
      answer_is_held_ = true;
      EXPECT_TRUE(Eventually([&] { return !Exists(directory_ + "/kubelet.sock"); }));
    };
    kubelet_ = MakeKubelet(std::move(options));
    ASSERT_TRUE(kubelet_->Start());
    old_ = RunDaemon();
    ExpectWhole(kubelet_.get(), "with the old one");
  }

  // Every resource has been registered `times` so far, and all of its devices are healthy.
  bool AllRegistered(int times) {
    return std::all_of(devices_.begin(), devices_.end(), [&](const auto& resource) {
      const auto status = kubelet_->NodeStatus(resource.first);
      return kubelet_->Registrations(resource.first) >= times && status &&
             status->allocatable == resource.second.size();
    });
  }
  bool NothingIsLost() {
    return std::all_of(devices_.begin(), devices_.end(), [&](const auto& resource) {
      const auto status = kubelet_->NodeStatus(resource.first);
      return status && status->allocatable == resource.second.size();
    });
  }
  static std::size_t Said(const Process& daemon, const std::string& what) {
    std::size_t count = 0;
    const std::string log = daemon.err();
    for (auto at = log.find(what); at != std::string::npos; at = log.find(what, at + 1)) ++count;
    return count;
  }
  static bool IsStandby(const Process& daemon, std::size_t resources) {
    return Said(daemon, "standby: a newer") >= resources;
  }

  std::atomic<bool> answers_late_ = false;  // when kubelet ends, it answers a registration of kPlain late
  std::atomic<bool> answer_is_held_ = false;
  std::unique_ptr<DeviceManager> kubelet_;
  std::unique_ptr<Process> old_;
  std::unique_ptr<Process> new_;
};

TEST_P(TwoDaemonsTest, TheNewOneTakesOverAndTheOldOneEnds) {
  new_ = RunDaemon();
  ASSERT_TRUE(Eventually([&] {
    EXPECT_TRUE(NothingIsLost()) << "while the new one comes";
    return AllRegistered(2) && IsStandby(*old_, 3);
  })) << old_->err();
  EXPECT_TRUE(kubelet_->Allocate(kRail0, 1)) << "by the new one";
  EXPECT_EQ(old_->Stop(), 0) << old_->err();
  if (GetParam() == Kubelet::kRepaired) {
    EXPECT_TRUE(Eventually([&] {
      EXPECT_TRUE(NothingIsLost()) << "while the old one goes";
      return OurSockets() == 3;
    }));
  }
  ExpectWhole(kubelet_.get(), "with the new one alone");
  // One each, one when the old one has left, and one whenever kubelet has dropped the new one for it.
  for (const auto& [resource, ids] : devices_) {
    const int registrations = kubelet_->Registrations(resource);
    EXPECT_LE(registrations, 3 + kubelet_->Drops(resource)) << resource;
  }
  EXPECT_TRUE(kubelet_->Allocate(kRail0, 1));
  EXPECT_EQ(new_->Stop(), 0) << new_->err();
  EXPECT_EQ(OurSockets(), 0U);
}

TEST_P(TwoDaemonsTest, TheNewOneDiesAndTheOldOneTakesOver) {
  new_ = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return AllRegistered(2) && IsStandby(*old_, 3); })) << old_->err();
  new_->Kill();
  ASSERT_TRUE(Eventually([&] { return Unserved(kubelet_.get()).empty(); })) << old_->err();
  EXPECT_TRUE(kubelet_->Allocate(kRail0, 1)) << "by the old one";
  EXPECT_EQ(old_->Stop(), 0) << old_->err();
}

TEST_P(TwoDaemonsTest, TheNewOneIsStoppedAndTheOldOneTakesOver) {
  new_ = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return AllRegistered(2) && IsStandby(*old_, 3); })) << old_->err();
  EXPECT_EQ(new_->Stop(), 0) << new_->err();
  ExpectWhole(kubelet_.get(), "with the old one again");
  EXPECT_TRUE(kubelet_->Allocate(kRail0, 1)) << "by the old one";
  EXPECT_EQ(old_->Stop(), 0) << old_->err();
}

// On a busy machine, for example. The old one never saw the new one and has an open stream, and kubelet does
// not query it.
TEST_P(TwoDaemonsTest, TheNewOneComesAndGoesWhileTheOldOneDoesNotLook) {
  old_->Signal(SIGSTOP);
  new_ = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return AllRegistered(2); })) << new_->err();
  EXPECT_EQ(new_->Stop(), 0) << new_->err();
  old_->Signal(SIGCONT);
  ExpectWhole(kubelet_.get(), "with the old one again");
  EXPECT_TRUE(kubelet_->Allocate(kRail0, 1)) << "by the old one";
  EXPECT_EQ(old_->Stop(), 0) << old_->err();
}

TEST_P(TwoDaemonsTest, KubeletRestartsMeanwhile) {
  new_ = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return AllRegistered(2); })) << old_->err();
  kubelet_->Stop();
  ASSERT_TRUE(kubelet_->Start());
  ASSERT_TRUE(Eventually([&] { return AllRegistered(3); })) << old_->err() << new_->err();
  EXPECT_EQ(old_->Stop(), 0) << old_->err();
  ExpectWhole(kubelet_.get(), "with the new one alone");
  ASSERT_FALSE(HasFailure()) << "the old one:\n" << old_->err() << "\nthe new one:\n" << new_->err();
  EXPECT_EQ(new_->Stop(), 0) << new_->err();
  EXPECT_EQ(OurSockets(), 0U);
}

// The new daemon loses the stream to the old kubelet when the new kubelet already runs. The old daemon then
// registers last. When it ends, the new daemon must still take that as a loss, and register again.
TEST_P(TwoDaemonsTest, KubeletAnswersAsItEndsAndTheOldOneComesLast) {
  answers_late_ = true;
  new_ = RunDaemon();
  ASSERT_TRUE(Eventually([&] { return answer_is_held_ && IsStandby(*old_, 3); })) << old_->err();
  old_->Signal(SIGSTOP);
  kubelet_->Stop();
  answers_late_ = false;
  ASSERT_TRUE(kubelet_->Start());
  ASSERT_TRUE(Eventually([&] { return Unserved(kubelet_.get()).empty(); })) << new_->err();
  old_->Signal(SIGCONT);
  const std::string registered = R"("registered with kubelet","resource":"b.org/plain")";
  ASSERT_TRUE(Eventually([&] { return Said(*old_, registered) >= 2; })) << old_->err();
  EXPECT_EQ(old_->Stop(), 0) << old_->err();
  ExpectWhole(kubelet_.get(), "with the new one alone");
  ASSERT_FALSE(HasFailure()) << "the old one:\n" << old_->err() << "\nthe new one:\n" << new_->err();
  EXPECT_EQ(new_->Stop(), 0) << new_->err();
}

TEST_P(TwoDaemonsTest, OneAfterTheOther) {
  constexpr int kUpdates = 8;
  for (int update = 0; update < kUpdates && !HasFailure(); ++update) {
    const std::string uid = AdmitSomePod(kubelet_.get());
    new_ = RunDaemon();
    const bool early = Random(2) == 0;  // the old one ends while the new one begins
    if (!early) {
      ASSERT_TRUE(Eventually([&] { return IsStandby(*old_, 3); })) << old_->err();
    }
    EXPECT_EQ(old_->Stop(), 0) << old_->err();
    ExpectWhole(kubelet_.get(), "update " + std::to_string(update) + " of pod " + uid);
    old_ = std::move(new_);
    while (Free(kRail0) < 2 || Free(kRail1) < 2) RemoveSomePod(kubelet_.get());
  }
  EXPECT_EQ(old_->Stop(), 0) << old_->err();
  EXPECT_EQ(OurSockets(), 0U);
}

std::string NameOf(const ::testing::TestParamInfo<Kubelet>& which) {
  static constexpr const char* kNames[] = {"AsItIs", "Repaired"};
  return kNames[static_cast<int>(which.param)];
}

INSTANTIATE_TEST_SUITE_P(Handover, TwoDaemonsTest, ::testing::Values(Kubelet::kAsItIs, Kubelet::kRepaired),
                         NameOf);

}  // namespace
}  // namespace railhead::testing

// The services' starts, their ends, and those that hang.
#include "deviceplugin/support/service/supervisor.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <condition_variable>
#include <thread>

#include "deviceplugin/support/metrics/counter.h"
#include "tests/support/eventually.h"
#include "tests/support/metrics/metrics_parser.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using namespace std::chrono_literals;
using Start = Supervisor::Start;
constexpr const char* kLock = "/run/railhead/locks/railheadd.lock";

// Waits until its stop, or hangs until it is let go, or ends with an error.
class Example : public Service {
 public:
  enum class Kind { kWaits, kHangs, kFails };
  Example(std::string_view name, Kind kind = Kind::kWaits) : name_(name), kind_(kind) {}
  ~Example() override { LetGo(); }

  [[nodiscard]] std::string_view name() const override { return name_; }
  void Register(MetricRegistry& metrics) override {
    metrics.Add("steps_of_" + std::string(name_), "Steps", steps_);
  }
  Result<void> Run(Worker& worker) override {
    runs_ = true;
    if (kind_ == Kind::kFails) return Fail(ErrorCode::kIo, "no inotify");
    if (kind_ == Kind::kHangs) {
      worker.Busy(-1s, "a driver that does not answer");
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return free_; });
    }
    while (!worker.StopRequested()) {
      worker.Wait(Worker::Clock::time_point::max());
      steps_.Add();
    }
    return {};
  }
  void LetGo() {
    const std::lock_guard lock(mutex_);
    free_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] bool runs() const { return runs_; }

 private:
  const std::string_view name_;
  const Kind kind_;
  std::atomic<bool> runs_{false};
  Counter steps_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool free_ = false;
};

class SupervisorTest : public ::testing::Test {
 protected:
  std::unique_ptr<Supervisor> Make() {
    return std::make_unique<Supervisor>(temp_.root(), kLock, [this] { ++failures_; });
  }
  static Worker::Clock::time_point Soon() { return Worker::Clock::now() + 60s; }

  TempRoot temp_;
  std::atomic<int> failures_{0};
};

TEST_F(SupervisorTest, RunsAllAndEndsAll) {
  const auto supervisor = Make();
  const auto& one = supervisor->Add(std::make_unique<Example>("one"), Start::kAtOnce);
  const auto& two = supervisor->Add(std::make_unique<Example>("two"), Start::kAlone);
  ASSERT_TRUE(supervisor->StartAll());
  EXPECT_TRUE(supervisor->StartOthers().value());
  EXPECT_TRUE(Eventually([&] { return one.runs() && two.runs(); }));
  EXPECT_TRUE(supervisor->FindStuck().empty());
  supervisor->RequestStop();
  EXPECT_TRUE(supervisor->AwaitEnd(Soon()).empty());
  EXPECT_EQ(failures_, 0);
}

// During an update the second one serves kubelet at once, and does the rest when the first has ended.
TEST_F(SupervisorTest, WhatNeedsTheNodeAloneWaitsForTheOther) {
  auto first = Make();
  ASSERT_TRUE(first->StartAll());
  ASSERT_TRUE(first->StartOthers().value());
  const auto second = Make();
  const auto& serves = second->Add(std::make_unique<Example>("serves"), Start::kAtOnce);
  const auto& alone = second->Add(std::make_unique<Example>("alone"), Start::kAlone);
  ASSERT_TRUE(second->StartAll());
  EXPECT_FALSE(second->StartOthers().value());
  EXPECT_TRUE(Eventually([&] { return serves.runs(); }));
  EXPECT_FALSE(second->StartOthers().value());
  EXPECT_FALSE(alone.runs());
  EXPECT_TRUE(second->FindStuck(Worker::Clock::now() + 30s).empty()) << "what does not run is not stuck";
  first.reset();
  EXPECT_TRUE(second->StartOthers().value());
  EXPECT_TRUE(Eventually([&] { return alone.runs(); }));
  EXPECT_TRUE(second->StartOthers().value()) << "once";
}

TEST_F(SupervisorTest, NamesWhoHangsWhileTheOthersGoOn) {
  const auto supervisor = Make();
  auto& hangs = supervisor->Add(std::make_unique<Example>("hangs", Example::Kind::kHangs), Start::kAtOnce);
  const auto& goes_on = supervisor->Add(std::make_unique<Example>("goes_on"), Start::kAtOnce);
  MetricRegistry metrics;
  supervisor->Register(metrics);
  ASSERT_TRUE(supervisor->StartAll());
  const std::vector<Supervisor::Stuck> expected = {{"hangs", "a driver that does not answer"}};
  EXPECT_TRUE(Eventually([&] { return supervisor->FindStuck() == expected && goes_on.runs(); }));
  auto page = ParseMetrics(metrics.Page(ExpositionFormat::kText), false);
  EXPECT_EQ(page.Value("railhead_thread_alive", {{"thread", "hangs"}}), 0);
  EXPECT_EQ(page.Value("railhead_thread_alive", {{"thread", "goes_on"}}), 1);
  EXPECT_EQ(page.Value("steps_of_goes_on_total"), 0);
  supervisor->RequestStop();
  EXPECT_EQ(supervisor->AwaitEnd(Worker::Clock::now() + 1s), std::vector<std::string_view>{"hangs"});
  hangs.LetGo();
  EXPECT_TRUE(supervisor->AwaitEnd(Soon()).empty());
  EXPECT_TRUE(supervisor->FindStuck().empty()) << "what has ended is not stuck";
}

TEST_F(SupervisorTest, AServiceThatCannotGoOnIsReportedOnce) {
  const auto supervisor = Make();
  supervisor->Add(std::make_unique<Example>("a", Example::Kind::kFails), Start::kAtOnce);
  supervisor->Add(std::make_unique<Example>("b", Example::Kind::kFails), Start::kAtOnce);
  EXPECT_FALSE(supervisor->Failure());
  ASSERT_TRUE(supervisor->StartAll());
  EXPECT_TRUE(supervisor->AwaitEnd(Soon()).empty());
  ASSERT_TRUE(supervisor->Failure());
  EXPECT_EQ(supervisor->Failure()->message, "no inotify");
  EXPECT_EQ(failures_, 1);
}

TEST_F(SupervisorTest, WithoutDescriptorsItIsAnErrorBeforeTheFirstThread) {
  const auto supervisor = Make();
  const auto& one = supervisor->Add(std::make_unique<Example>("one"), Start::kAtOnce);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto started = supervisor->StartAll();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("starting one"), std::string::npos) << started.error().message;
  EXPECT_FALSE(one.runs());
}

// A machine without a thread left, played by a default stack that fits into no memory.
class WithoutThreads {
 public:
  WithoutThreads() {
    EXPECT_EQ(::pthread_getattr_default_np(&usual_), 0);
    pthread_attr_t huge;
    EXPECT_EQ(::pthread_getattr_default_np(&huge), 0);
    EXPECT_EQ(::pthread_attr_setstacksize(&huge, std::size_t{1} << 46U), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&huge), 0);
  }
  WithoutThreads(const WithoutThreads&) = delete;
  WithoutThreads& operator=(const WithoutThreads&) = delete;
  ~WithoutThreads() { EXPECT_EQ(::pthread_setattr_default_np(&usual_), 0); }

 private:
  pthread_attr_t usual_{};
};

TEST_F(SupervisorTest, WithoutThreadsItIsAnErrorThatNamesTheService) {
  const auto supervisor = Make();
  supervisor->Add(std::make_unique<Example>("one"), Start::kAtOnce);
  const auto started = [&] {
    const WithoutThreads none;
    return supervisor->StartAll();
  }();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kLimited);
  EXPECT_NE(started.error().message.find("a thread for one"), std::string::npos) << started.error().message;
  EXPECT_TRUE(supervisor->AwaitEnd(Soon()).empty()) << "there is no thread to wait for";
}

// The others are started when there are threads again, each once.
TEST_F(SupervisorTest, WhatCouldNotStartIsStartedLater) {
  const auto supervisor = Make();
  const auto& one = supervisor->Add(std::make_unique<Example>("one"), Start::kAlone);
  const auto& two = supervisor->Add(std::make_unique<Example>("two"), Start::kAlone);
  ASSERT_TRUE(supervisor->StartAll());
  {
    const WithoutThreads none;
    EXPECT_FALSE(supervisor->StartOthers());
    EXPECT_FALSE(supervisor->StartOthers()) << "it is said again";
  }
  EXPECT_FALSE(one.runs());
  ASSERT_TRUE(supervisor->StartOthers());
  EXPECT_TRUE(Eventually([&] { return one.runs() && two.runs(); }));
  EXPECT_TRUE(supervisor->StartOthers().value());
}

}  // namespace
}  // namespace railhead::testing

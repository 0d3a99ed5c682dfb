// A service's thread: what wakes it, what stops it, and when it is stuck.
#include "deviceplugin/support/service/worker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "deviceplugin/support/service/once_per_change.h"
#include "deviceplugin/support/service/pass_pause.h"
#include "deviceplugin/support/service/published.h"

namespace railhead::testing {
namespace {

using namespace std::chrono_literals;
using Clock = Worker::Clock;
constexpr auto kNever = Clock::time_point::max();

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() : worker_(Worker::Make().value()) {}
  static bool IsLate(const Worker& worker, Clock::duration later) {
    return worker.StuckAt(Clock::now() + later).has_value();
  }

  std::unique_ptr<Worker> worker_;
};

TEST_F(WorkerTest, AWakeBeforeTheWaitIsNotLost) {
  worker_->Wake();
  worker_->Wake();
  EXPECT_TRUE(worker_->Wait(kNever));
  EXPECT_FALSE(worker_->Wait(Clock::now())) << "two wakes are one";
}

TEST_F(WorkerTest, WaitsForATimeADescriptorAndAnyThread) {
  EXPECT_FALSE(worker_->Wait(Clock::now() - 1h)) << "a time that has passed";
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd in(ends[0]);
  const UniqueFd out(ends[1]);
  std::array<pollfd, 2> fds{{{-1, POLLIN, 0}, {in.get(), POLLIN, 0}}};
  ASSERT_EQ(::write(out.get(), "x", 1), 1);
  EXPECT_FALSE(worker_->Wait(kNever, fds));
  EXPECT_EQ(fds[0].revents, 0);
  EXPECT_NE(fds[1].revents, 0);
  char c = 0;
  ASSERT_EQ(::read(in.get(), &c, 1), 1);
  std::thread other([this] { worker_->Wake(); });
  EXPECT_TRUE(worker_->Wait(kNever, fds));
  EXPECT_EQ(fds[1].revents, 0) << "as of this wait";
  other.join();
}

TEST_F(WorkerTest, AStopEndsEveryWaitFromThenOn) {
  std::thread other([this] { worker_->RequestStop(); });
  worker_->Pause(1h);
  EXPECT_TRUE(worker_->StopRequested());
  worker_->Wait(kNever);
  worker_->Wait(kNever);
  worker_->Pause(1h);
  other.join();
  bool called = false;
  const std::stop_callback late(worker_->stop(), [&] { called = true; });
  EXPECT_TRUE(called);
}

TEST_F(WorkerTest, WhatWakesAPauseEndsTheNextWait) {
  worker_->Wake();
  const auto begin = Clock::now();
  worker_->Pause(50ms);
  EXPECT_GE(Clock::now() - begin, 50ms);
  EXPECT_TRUE(worker_->Wait(kNever));
  EXPECT_FALSE(worker_->Wait(Clock::now())) << "once";
}

TEST_F(WorkerTest, IsStuckWhenAStepTakesLongerThanItsLimit) {
  EXPECT_FALSE(IsLate(*worker_, std::chrono::hours(24 * 365))) << "it has not begun";
  worker_->Busy(90s, "reading a NIC");
  EXPECT_FALSE(IsLate(*worker_, 80s));
  EXPECT_EQ(worker_->StuckAt(Clock::now() + 91s), "reading a NIC");
  worker_->Wait(Clock::now());
  EXPECT_FALSE(IsLate(*worker_, Worker::kLongestStep - 10s)) << "another step has begun";
  EXPECT_TRUE(IsLate(*worker_, Worker::kLongestStep + 1s));
}

// However long the service waits, its thread beats.
TEST_F(WorkerTest, AThreadThatWaitsIsNeverFarFromItsNextBeat) {
  std::thread waits([this] { worker_->Wait(kNever); });
  while (worker_->StuckAt(Clock::now() + 1h) != "waiting") std::this_thread::yield();
  EXPECT_FALSE(IsLate(*worker_, Worker::kLongestStep));
  worker_->RequestStop();
  waits.join();
}

// Whatever comes and goes beside it, from any thread.
TEST_F(WorkerTest, WorkAsideThatHangsIsSeenAmongOthers) {
  worker_->Busy(1h, "a step");
  const auto others = [this] {
    for (int i = 0; i < 1000; ++i) Worker::Aside(*worker_, 60s, "quick");
  };
  {
    const Worker::Aside hangs(*worker_, -1s, "a request");
    std::thread beside(others);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(worker_->StuckAt(), "a request");
    others();
    beside.join();
  }
  EXPECT_FALSE(IsLate(*worker_, 30min)) << "all have ended";
}

TEST_F(WorkerTest, AHelperIsLookedAtAsLongAsItExists) {
  worker_->Busy(1h, "a step");
  std::shared_ptr<Worker> helper = Worker::Make().value();
  worker_->Adopt(helper, "answers on rail0");
  worker_->Adopt(helper, "answers on rail0");
  EXPECT_FALSE(IsLate(*worker_, 30min));
  helper->Busy(10s, "a step of its own");
  EXPECT_EQ(worker_->StuckAt(Clock::now() + 11s), "answers on rail0: a step of its own");
  helper.reset();
  EXPECT_FALSE(IsLate(*worker_, 30min));
}

TEST(PublishedTest, ASubscriberIsWokenAndFindsTheNewest) {
  const auto worker = Worker::Make().value();
  Published<int> value(3);
  EXPECT_EQ(*value.Get(), 3);
  value.Subscribe(*worker);
  const auto before = value.Get();
  std::thread other([&] {
    for (int i = 4; i <= 1000; ++i) value.Set(i);
  });
  int seen = 3;
  while (seen != 1000) {
    EXPECT_TRUE(worker->Wait(kNever));
    EXPECT_GE(*value.Get(), seen);
    seen = *value.Get();
  }
  other.join();
  EXPECT_EQ(*before, 3) << "a value never changes";
}

TEST(PublishedTest, ASubscriptionEndsWithItsWorker) {
  Published<int> value;
  value.Subscribe(*Worker::Make().value());
  value.Set(1);
  EXPECT_EQ(*value.Get(), 1);
}

TEST(PassPauseTest, VariesAndComesSoonAfterAnUnfinishedPass) {
  PassPause pause(100s);
  for (int i = 0; i < 100; ++i) {
    const auto next = pause.Next();
    EXPECT_GE(next, 80s);
    EXPECT_LE(next, 120s);
  }
  std::chrono::milliseconds whole = 1s;
  for (int i = 0; i < 10; ++i, whole = std::min<std::chrono::milliseconds>(2 * whole, 100s))
    EXPECT_LE(pause.Next(true), whole * 6 / 5);
  EXPECT_GE(pause.Next(), 80s);
  EXPECT_LE(pause.Next(true), 2s) << "from the shortest again";
}

TEST(OncePerChangeTest, AFailureThatStaysTheSameIsNewsOnce) {
  OncePerChange known;
  const Error one{ErrorCode::kIo, "one", {}, 0};
  EXPECT_FALSE(known.IsNew(Result<void>()));
  EXPECT_TRUE(known.IsNew(one));
  EXPECT_FALSE(known.IsNew(one));
  EXPECT_TRUE(known.IsNew(Error{ErrorCode::kIo, "two", {}, 0}));
  EXPECT_TRUE(known.Clear());
  EXPECT_FALSE(known.Clear());
  EXPECT_TRUE(known.IsNew(one));
  EXPECT_FALSE(known.IsNew(Result<int>(1)));
  EXPECT_TRUE(known.IsNew(one)) << "it was well in between";
}

}  // namespace
}  // namespace railhead::testing

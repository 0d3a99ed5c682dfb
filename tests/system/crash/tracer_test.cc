// The tracer with processes that are killed at any moment, also in its own stops.
#include "tests/system/crash/tracer.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/eventually.h"

namespace railhead::crash {
namespace {

// Makes children as fast as it can, so that it spends most of its time in the tracer's stops.
int ForkForEver() {
  for (;;) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    (void)::waitpid(child, nullptr, 0);
  }
}

// Traces processes that another process kills after a random time. Returns whether each ended by that kill.
bool TraceKilled(unsigned seed, int rounds) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    std::thread killer;
    Tracing tracing;
    tracing.started = [&](pid_t pid) {
      const std::chrono::microseconds after(200 + random() % 3000);
      killer = std::thread([pid, after] {
        std::this_thread::sleep_for(after);
        (void)::kill(pid, SIGKILL);
      });
    };
    const auto traced = TraceFunction(ForkForEver, tracing);
    killer.join();
    if (!traced || !WIFSIGNALED(traced->status) || WTERMSIG(traced->status) != SIGKILL) return false;
  }
  return true;
}

// Runs many at once, so that tracers wait for the CPU while their processes are killed.
int TraceMany() {
  constexpr unsigned kTracers = 24;
  constexpr int kRounds = 60;
  std::atomic<int> failed{0};
  std::vector<std::thread> tracers;
  for (unsigned seed = 0; seed < kTracers; ++seed)
    tracers.emplace_back([&failed, seed] { failed += TraceKilled(seed, kRounds) ? 0 : 1; });
  for (std::thread& tracer : tracers) tracer.join();
  return failed == 0 ? 0 : 1;
}

// A process that is killed in the stop of a fork has no child to report. A faulty tracer took the child for
// process 0 and stopped its own process group, including the tests and their runner.
TEST(TracerTest, AKilledProcessStopsNobodyElse) {
  const pid_t tracer = ::fork();
  if (tracer == 0) {
    (void)::setpgid(0, 0);
    ::_exit(TraceMany());
  }
  int status = 0;
  ASSERT_EQ(::waitpid(tracer, &status, WUNTRACED), tracer);
  if (WIFSTOPPED(status)) {
    (void)::kill(-tracer, SIGKILL);
    (void)::waitpid(tracer, nullptr, 0);
    FAIL() << "the tracer stopped its process group";
  }
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

// Its children outlive it. Their tracer lets them go while they become the main thread's.
int LeaveOrphans() {
  constexpr int kOrphans = 3;
  for (int i = 0; i < kOrphans; ++i) {
    if (::fork() != 0) continue;
    for (int pause = 0; pause < 20; ++pause) std::this_thread::sleep_for(std::chrono::microseconds(500));
    ::_exit(0);
  }
  return 0;
}

// Threads trace programs whose children outlive them, while the main thread traces as well.
int TraceBesideOrphans() {
  constexpr int kTracers = 8;
  constexpr int kRounds = 30;
  Adopt();
  std::atomic<int> left{kTracers};
  std::atomic<int> failed{0};
  const auto trace = [&failed](const std::function<int()>& work) {
    const auto traced = TraceFunction(work, {});
    failed += traced && traced->Succeeded() ? 0 : 1;
  };
  std::vector<std::thread> tracers;
  for (int i = 0; i < kTracers; ++i) {
    tracers.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) trace(LeaveOrphans);
      --left;
    });
  }
  while (left > 0) trace([] { return 0; });
  for (std::thread& tracer : tracers) tracer.join();
  return failed == 0 ? 0 : 1;
}

// The main thread took the stop of an orphan that another thread traced. Both then waited for it for ever.
TEST(TracerTest, AnOrphanStopsForItsTracerOnly) {
  const pid_t tracer = ::fork();
  if (tracer == 0) {
    (void)::setpgid(0, 0);
    ::_exit(TraceBesideOrphans());
  }
  (void)::setpgid(tracer, tracer);
  int status = 0;
  const bool ended = testing::Eventually([&] { return ::waitpid(tracer, &status, WNOHANG) == tracer; });
  if (!ended) {
    (void)::kill(-tracer, SIGKILL);
    (void)::waitpid(tracer, nullptr, 0);
    FAIL() << "the tracers wait for ever";
  }
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

}  // namespace
}  // namespace railhead::crash

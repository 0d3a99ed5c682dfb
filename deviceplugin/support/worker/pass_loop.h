// A thread of passes: one at once, then one every interval, give or take a fifth (so that the
// nodes of a cluster do not do it all at the same moment).
//
// Threads: its own one calls `run`; Stop() and the waits from any other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

namespace railhead {

class PassLoop {
 public:
  struct Pass {
    std::function<void()> run;
    std::function<void()> stop;  // a pass that runs ends before its next step, later ones at once
  };

  PassLoop(std::chrono::seconds interval, Pass pass);
  // Ends the thread, however long its step takes.
  ~PassLoop();
  PassLoop(const PassLoop&) = delete;
  PassLoop& operator=(const PassLoop&) = delete;

  // true when the first pass is over, false at the limit or when stopped before.
  bool AwaitFirst(std::chrono::milliseconds limit);
  // The pass that runs ends before its next step.
  void Stop();
  // Whether the thread has ended.
  bool AwaitEnd(std::chrono::milliseconds limit);

 private:
  void Loop();
  std::chrono::milliseconds Pause();

  const std::chrono::seconds interval_;
  const Pass pass_;
  std::minstd_rand random_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool first_over_ = false;
  bool stopped_ = false;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead

// Heartbeat: a thread's word on when it will be heard of again.
//
// Each time it begins to work or to wait it says within which time it will say so again. One
// that has missed that hangs: in a system call, a lock, or a wake-up that never came.
// Ownership: the thread borrows it. Threads: thread-safe.
#pragma once

#include <atomic>
#include <chrono>

namespace railhead {

class Heartbeat {
 public:
  using Clock = std::chrono::steady_clock;

  void Within(std::chrono::nanoseconds limit) { due_ = (Clock::now() + limit).time_since_epoch().count(); }
  // There is nothing to wait for: until the next Within() it is never late.
  void Rest() { due_ = kNever; }

  [[nodiscard]] bool IsLate(Clock::time_point now = Clock::now()) const {
    return now.time_since_epoch().count() > due_;
  }

 private:
  static constexpr Clock::rep kNever = Clock::duration::max().count();
  std::atomic<Clock::rep> due_{kNever};
};

// The threads without which railheadd is of no use.
struct Heartbeats {
  Heartbeat advertiser;
  Heartbeat registrar;
  Heartbeat reconciler;
  Heartbeat binder;
  Heartbeat provisioner;  // of a start that takes long
};

}  // namespace railhead

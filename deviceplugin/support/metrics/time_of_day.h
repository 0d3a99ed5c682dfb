// TimeOfDay: a moment for people, which another thread reads. Threads: thread-safe.
#pragma once

#include <atomic>
#include <chrono>

namespace railhead {

class TimeOfDay {
 public:
  using Clock = std::chrono::system_clock;

  void SetNow() { time_ = Clock::now().time_since_epoch().count(); }
  // Since 1970; 0 before SetNow().
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::duration(time_.load())).count();
  }

 private:
  std::atomic<Clock::rep> time_{0};
};

}  // namespace railhead

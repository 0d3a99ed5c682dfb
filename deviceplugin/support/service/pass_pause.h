// PassPause: how long a service waits between two passes.
//
// The interval varies by up to a fifth, so that the nodes of a cluster do not all run at the same moment.
// After an unfinished pass the next one comes within a second or so. Further ones in a row come after twice
// the time each, up to the interval. Threads: one.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace railhead {

class PassPause {
 public:
  explicit PassPause(std::chrono::milliseconds interval) : interval_(interval) {}

  // `unfinished`: the pass that has just ended left something that may be possible soon.
  std::chrono::milliseconds Next(bool unfinished = false) {
    const auto whole = unfinished ? std::min(interval_, retry_) : interval_;
    retry_ = unfinished ? whole * 2 : kFirstRetry;
    std::uniform_int_distribution<std::chrono::milliseconds::rep> jitter(whole.count() * 4 / 5,
                                                                         whole.count() * 6 / 5);
    return std::chrono::milliseconds(jitter(random_));
  }

 private:
  static constexpr std::chrono::milliseconds kFirstRetry{1000};

  const std::chrono::milliseconds interval_;
  std::chrono::milliseconds retry_ = kFirstRetry;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace railhead

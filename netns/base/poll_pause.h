// poll_pause.h - how long to wait before the next poll of something that the kernel changes without an event.
//
// Purpose: a quick change is seen within a millisecond or so. A caller that waits for seconds polls ever less
// often. So many waiting ADDs do not take the processor from the work that they wait for.
// Values: 1 ms, doubled with every poll up to 20 ms. After a longer wait a sixteenth of the time waited so
// far, but never above 250 ms.
// Threads: one waiting loop each; no errors.
#pragma once

#include <algorithm>
#include <chrono>

namespace railhead {

class PollPause {
 public:
  using Duration = std::chrono::milliseconds;

  // `waited`: since the first poll.
  Duration After(std::chrono::steady_clock::duration waited) {
    const auto patience = std::chrono::duration_cast<Duration>(waited) / 16;
    const auto longest = std::clamp<Duration>(patience, kUsual, kLongest);
    const auto pause = std::min(next_, longest);
    next_ = 2 * pause;
    return pause;
  }
  Duration Next() { return After(std::chrono::steady_clock::now() - began_); }

 private:
  static constexpr Duration kUsual{20};
  static constexpr Duration kLongest{250};

  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  Duration next_{1};
};

}  // namespace railhead

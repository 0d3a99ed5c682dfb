// poll_pause.h - how long to wait before the next look at something that the kernel
// changes without telling anybody.
//
// Purpose: what comes soon is seen within a millisecond or some; who waits for seconds
//   looks ever less often, so that many waiting ADDs do not take the processor from what
//   they wait for.
// Values: 1 ms, doubled with every look up to 20 ms, or to a sixteenth of the time waited
//   so far where that is more, but never above 250 ms.
// Threads: one waiting loop each; no errors.
#pragma once

#include <algorithm>
#include <chrono>

namespace railhead {

class PollPause {
 public:
  using Duration = std::chrono::milliseconds;

  // `waited`: since the first look.
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

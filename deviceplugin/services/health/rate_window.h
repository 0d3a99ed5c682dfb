// How much a counter rose within the last `window`.
//
// Rises are kept in at most 30 steps, so memory does not depend on how often is read;
// the window is exact to a thirtieth. A value below the last one is a counter that began
// anew (driver rebound, statistics reset): no rise, and the new value is the base.
// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace railhead {

class RateWindow {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RateWindow(std::chrono::seconds window);

  void Read(std::uint64_t value, Time now);
  // Rises that were seen at `when` by someone else: a process before this one.
  void Add(std::uint64_t rises, Time when);
  // Rises within the window that ends now.
  [[nodiscard]] std::uint64_t Sum(Time now) const;

 private:
  struct Step {
    Time start;
    std::uint64_t rises = 0;
  };

  std::chrono::steady_clock::duration window_;
  std::chrono::steady_clock::duration step_;
  std::optional<std::uint64_t> last_;
  std::vector<Step> steps_;  // in the order of time
};

}  // namespace railhead

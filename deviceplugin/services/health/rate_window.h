// How much a counter rose within the last `window`.
//
// Rises are kept in at most 30 steps, so memory does not depend on the number of readings. The window is
// exact to a thirtieth. A value below the last one means that the counter was reset (driver rebound,
// statistics cleared). It is not a rise, and the new value is the base.
// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace railhead::health {

class RateWindow {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RateWindow(std::chrono::seconds window);

  void Read(std::uint64_t value, Time now);
  // Rises that an earlier process saw at `when`.
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

}  // namespace railhead::health

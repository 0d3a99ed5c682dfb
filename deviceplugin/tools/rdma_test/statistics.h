// Figures of a run. Latencies are half of a round trip, as perftest counts them.
// Threads: pure functions. Units: in the names.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace railhead::rdmatest {

struct Latency {
  std::uint64_t samples = 0;
  double min_us = 0;
  double median_us = 0;
  double p99_us = 0;
  double max_us = 0;
};

// Of whole round trips, in any order. The first hundred, or tenth if that is less, are left out:
// caches, neighbours and clock rates come to rest.
Latency LatencyOf(std::vector<std::chrono::nanoseconds> round_trips);

struct Bandwidth {
  std::uint64_t bytes = 0;
  double seconds = 0;
  [[nodiscard]] double GigabitsPerSecond() const {
    return seconds > 0 ? static_cast<double>(bytes) * 8 / seconds / 1e9 : 0;
  }
};

}  // namespace railhead::rdmatest

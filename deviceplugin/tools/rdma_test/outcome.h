// What came of one test, and its way from the process that measured it, as bytes.
// Threads: values and pure functions. Errors: kMalformed.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::rdmatest {

// Figures of a run. Latencies are half of a round trip, as perftest counts them.
// Threads: pure functions. Units: in the names.

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

// One end, as it was in the end chosen.
struct UsedEnd {
  std::string device;
  int gid_index = 0;
  IpAddress gid;
};

struct Outcome {
  UsedEnd from;
  UsedEnd to;
  int mtu = 0;  // of the path, payload of a packet
  int traffic_class = 0;
  Bandwidth write;
  Latency write_latency;
  Latency send_latency;
};

std::string EncodeOutcome(const Outcome& outcome);
Result<Outcome> DecodeOutcome(const std::string& bytes);

}  // namespace railhead::rdmatest

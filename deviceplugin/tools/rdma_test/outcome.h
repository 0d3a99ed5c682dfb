// The outcome of one test with its figures, and its encoding for the pipe from the process that measured it.
//
// Latencies are half of a round trip, as perftest counts them.
// Threads: values and pure functions. Errors: kMalformed. Units: in the names.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::rdma_test {

struct Latency {
  std::uint64_t samples = 0;
  double min_us = 0;
  double median_us = 0;
  double p99_us = 0;
  double max_us = 0;

  static void List(auto& f) {
    f("samples", &Latency::samples);
    f("minUs", &Latency::min_us);
    f("medianUs", &Latency::median_us);
    f("p99Us", &Latency::p99_us);
    f("maxUs", &Latency::max_us);
  }
};

// From whole round trips, in any order. It skips the first hundred, or the first tenth if that is less: until
// then caches, neighbours and clock rates are not stable.
Latency LatencyOf(std::vector<std::chrono::nanoseconds> round_trips);

struct Bandwidth {
  std::uint64_t bytes = 0;
  double seconds = 0;
  [[nodiscard]] double GigabitsPerSecond() const {
    return seconds > 0 ? static_cast<double>(bytes) * 8 / seconds / 1e9 : 0;
  }

  static void List(auto& f) {
    f.Output("gbitPerSecond", &Bandwidth::GigabitsPerSecond);
    f("bytes", &Bandwidth::bytes);
    f("seconds", &Bandwidth::seconds);
  }
};

// The device and GID that one end used.
struct UsedEnd {
  std::string device;
  int gid_index = 0;
  IpAddress gid;

  static void List(auto& f) {
    f("device", &UsedEnd::device);
    f("gidIndex", &UsedEnd::gid_index);
    f("gid", &UsedEnd::gid);
  }
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

}  // namespace railhead::rdma_test

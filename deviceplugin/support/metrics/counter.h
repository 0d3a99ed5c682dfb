// Counter and LatencyHistogram: count events where they happen, for a later reader.
//
// To count is one relaxed atomic addition, to observe a duration two, without locks, allocations or waits. A
// reader gets values that are at most some nanoseconds old. A histogram's sum may be one observation ahead of
// its counts. Threads: thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace railhead {

class Counter {
 public:
  void Add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class LatencyHistogram {
 public:
  // Allocate's own work takes tens of microseconds, a durable write some hundred to some ten thousand. The
  // limit of kubelet is ten seconds or more.
  static constexpr std::array<std::uint64_t, 14> kBoundsUs = {
      10, 25, 50, 100, 250, 500, 1'000, 2'500, 5'000, 10'000, 25'000, 100'000, 1'000'000, 10'000'000};

  void Observe(std::chrono::nanoseconds duration) {
    const auto ns = duration.count() < 0 ? 0 : static_cast<std::uint64_t>(duration.count());
    std::size_t bucket = 0;
    while (bucket < kBoundsUs.size() && ns > kBoundsUs[bucket] * 1000) ++bucket;
    buckets_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(ns, std::memory_order_relaxed);
  }

  // Within the bound of this index and above the one before; behind the last: above all.
  [[nodiscard]] std::uint64_t InBucket(std::size_t index) const {
    return buckets_[index].load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t sum_ns() const { return sum_ns_.load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint64_t>, kBoundsUs.size() + 1> buckets_{};
  std::atomic<std::uint64_t> sum_ns_{0};
};

}  // namespace railhead

// Exposition: metrics as text, in one of the two formats that Prometheus reads.
//
//   Exposition page(ExpositionFormat::kText);
//   page.Begin(MetricType::kCounter, "railhead_listandwatch_updates", "Device lists sent to kubelet");
//   page.Sample({{"resource", name}}, lists);
//   std::string body = std::move(page).Finish();
//
// A counter's family is named without _total, which its samples get. Labels and help are escaped, and invalid
// UTF-8 in them is replaced. Reasons against prometheus-cpp: Debian has it only as shared objects, and its
// histograms take a lock and allocate. The tests compare what both write. Source:
// prometheus.io/docs/instrumenting/exposition_formats (0.0.4), OpenMetrics 1.0. Ownership: a value. Threads:
// one.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace railhead {

// Counter and LatencyHistogram: count events where they happen, for a later reader.
//
// To count is one relaxed atomic addition, to observe a duration two, without locks, allocations or waits. A
// reader gets values that are at most some nanoseconds old. A histogram's sum may be one observation ahead of
// its counts. Threads: thread-safe.

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

enum class ExpositionFormat : std::uint8_t { kText, kOpenMetrics };
enum class MetricType : std::uint8_t { kCounter, kGauge, kHistogram };

struct MetricLabel {
  std::string_view name;
  std::string_view value;
};
using MetricLabels = std::initializer_list<MetricLabel>;

// Labels that several samples share, escaped once. Empty ones are omitted: for Prometheus they are the same.
class LabelText {
 public:
  [[nodiscard]] LabelText With(MetricLabels more) const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;  // name="value",name="value"
};

class Exposition {
 public:
  explicit Exposition(ExpositionFormat format) : format_(format) {}

  // The family of the following samples.
  void Begin(MetricType type, std::string_view name, std::string_view help);
  void Sample(MetricLabels labels, std::uint64_t value);
  void Sample(MetricLabels labels, double value);
  void Sample(const LabelText& labels, std::uint64_t value);
  void Sample(const LabelText& labels, double value);
  // In seconds.
  void Sample(MetricLabels labels, const LatencyHistogram& histogram);

  [[nodiscard]] std::string Finish() &&;

 private:
  void Line(const LabelText& labels, std::string_view value);
  void Line(std::string_view suffix, MetricLabels labels, std::string_view le, std::string_view value);

  const ExpositionFormat format_;
  std::string family_;
  MetricType type_ = MetricType::kGauge;
  std::string text_;
};

// By the Accept header of the request; "" is kText.
ExpositionFormat FormatAccepted(std::string_view accept);
std::string_view ContentTypeOf(ExpositionFormat format);

// The metrics that every Prometheus client has about its own process, under the usual names. Source:
// prometheus.io/docs/instrumenting/writing_clientlibs (process metrics); proc(5). Threads: thread-safe.
// Values that cannot be read are omitted.

void AppendProcessMetrics(Exposition* page);

}  // namespace railhead

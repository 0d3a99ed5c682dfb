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

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "deviceplugin/support/metrics/counter.h"

namespace railhead {

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

}  // namespace railhead

#include "deviceplugin/support/metrics/exposition.h"

#include <sys/resource.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "deviceplugin/support/metrics/counter.h"

namespace railhead {
namespace {

std::string_view NameOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kHistogram:
      return "histogram";
    case MetricType::kGauge:
      break;
  }
  return "gauge";
}

// The shortest text that is read back as the same number.
std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end.ptr};
}

// How many bytes the UTF-8 character at the beginning has; 0: invalid UTF-8.
std::size_t CharacterLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool no_character = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  return overlong || no_character ? 0 : length;
}

void AppendEscaped(std::string_view text, bool quoted, std::string* out) {
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    if (length == 0) {
      out->append("\xEF\xBF\xBD");
      text.remove_prefix(1);
      continue;
    }
    if (text[0] == '\n') {
      out->append("\\n");
    } else {
      if (text[0] == '\\' || (quoted && text[0] == '"')) out->push_back('\\');
      out->append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
}

}  // namespace

LabelText LabelText::With(MetricLabels more) const {
  LabelText all(*this);
  for (const MetricLabel& label : more) {
    if (label.value.empty()) continue;
    if (!all.text_.empty()) all.text_.push_back(',');
    all.text_.append(label.name).append("=\"");
    AppendEscaped(label.value, true, &all.text_);
    all.text_.push_back('"');
  }
  return all;
}

void Exposition::Begin(MetricType type, std::string_view name, std::string_view help) {
  type_ = type;
  family_ = name;
  // The older format has no families of counters, so it gets the sample's name.
  const bool total = type == MetricType::kCounter && format_ == ExpositionFormat::kText;
  const std::string shown = family_ + (total ? "_total" : "");
  text_.append("# HELP ").append(shown).append(" ");
  AppendEscaped(help, format_ == ExpositionFormat::kOpenMetrics, &text_);
  text_.append("\n# TYPE ").append(shown).append(" ").append(NameOf(type)).append("\n");
}

void Exposition::Line(std::string_view suffix, MetricLabels labels, std::string_view le,
                      std::string_view value) {
  text_.append(family_).append(suffix);
  char before = '{';
  const auto label = [&](std::string_view name, std::string_view content) {
    text_.push_back(before);
    text_.append(name).append("=\"");
    AppendEscaped(content, true, &text_);
    text_.push_back('"');
    before = ',';
  };
  for (const MetricLabel& one : labels) label(one.name, one.value);
  if (!le.empty()) label("le", le);
  if (before == ',') text_.push_back('}');
  text_.append(" ").append(value).append("\n");
}

void Exposition::Line(const LabelText& labels, std::string_view value) {
  text_.append(family_);
  if (type_ == MetricType::kCounter) text_.append("_total");
  if (!labels.text().empty()) text_.append("{").append(labels.text()).append("}");
  text_.append(" ").append(value).append("\n");
}

void Exposition::Sample(const LabelText& labels, std::uint64_t value) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  Line(labels, {digits.data(), end.ptr});
}

void Exposition::Sample(const LabelText& labels, double value) {
  Line(labels, Number(value));
}

void Exposition::Sample(MetricLabels labels, std::uint64_t value) {
  Line(type_ == MetricType::kCounter ? "_total" : "", labels, "", std::to_string(value));
}

void Exposition::Sample(MetricLabels labels, double value) {
  Line(type_ == MetricType::kCounter ? "_total" : "", labels, "", Number(value));
}

void Exposition::Sample(MetricLabels labels, const LatencyHistogram& histogram) {
  // The count comes from the buckets. They are read once, so that both agree.
  const double sum = static_cast<double>(histogram.sum_ns()) / 1e9;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < LatencyHistogram::kBoundsUs.size(); ++i) {
    count += histogram.InBucket(i);
    std::string bound = Number(static_cast<double>(LatencyHistogram::kBoundsUs[i]) / 1e6);
    // OpenMetrics wants a bound to look like a float.
    const bool plain = bound.find_first_of(".e") == std::string::npos;
    if (plain && format_ == ExpositionFormat::kOpenMetrics) bound += ".0";
    Line("_bucket", labels, bound, std::to_string(count));
  }
  count += histogram.InBucket(LatencyHistogram::kBoundsUs.size());
  Line("_bucket", labels, "+Inf", std::to_string(count));
  Line("_sum", labels, "", Number(sum));
  Line("_count", labels, "", std::to_string(count));
}

std::string Exposition::Finish() && {
  if (format_ == ExpositionFormat::kOpenMetrics) text_.append("# EOF\n");
  return std::move(text_);
}

ExpositionFormat FormatAccepted(std::string_view accept) {
  return accept.find("application/openmetrics-text") == std::string_view::npos
             ? ExpositionFormat::kText
             : ExpositionFormat::kOpenMetrics;
}

std::string_view ContentTypeOf(ExpositionFormat format) {
  return format == ExpositionFormat::kText ? "text/plain; version=0.0.4; charset=utf-8"
                                           : "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

}  // namespace railhead

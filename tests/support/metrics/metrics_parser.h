// A strict reader of /metrics: input that Prometheus merely tolerates is an error here.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace railhead::testing {

struct MetricSample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct MetricFamily {
  std::string type;
  std::string help;
  std::vector<MetricSample> samples;
};

struct MetricsText {
  std::map<std::string, MetricFamily> families;
  std::vector<std::string> errors;  // with line numbers

  // The sample with these labels (all of them), or an error in `errors` and 0.
  double Value(const std::string& name, const std::map<std::string, std::string>& labels = {});
  [[nodiscard]] const MetricSample* Find(const std::string& name,
                                         const std::map<std::string, std::string>& labels) const;
};

// `open_metrics`: as OpenMetrics 1.0, else as the text format 0.0.4.
MetricsText ParseMetrics(const std::string& text, bool open_metrics);

}  // namespace railhead::testing

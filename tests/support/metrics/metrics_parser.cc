#include "tests/support/metrics/metrics_parser.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace railhead::testing {
namespace {

bool IsName(const std::string& text, bool with_colon) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(c >= '0' && c <= '9') && !(with_colon && c == ':')) return false;
  }
  return true;
}

class Parser {
 public:
  Parser(const std::string& text, bool open_metrics) : text_(text), open_metrics_(open_metrics) {}

  MetricsText Parse() {
    if (text_.empty() || text_.back() != '\n') Error("the last line has no end");
    for (std::size_t begin = 0; begin < text_.size(); ++number_) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      Line(text_.substr(begin, end - begin));
      begin = end + 1;
    }
    if (open_metrics_ != ended_)
      Error(open_metrics_ ? "# EOF is missing" : "# EOF is no comment for this format");
    for (const auto& [name, family] : result_.families) CheckHistogram(name, family);
    return std::move(result_);
  }

 private:
  void Error(const std::string& what) {
    result_.errors.push_back("line " + std::to_string(number_) + ": " + what);
  }

  void Line(const std::string& line) {
    if (ended_) return Error("something behind # EOF");
    if (line == "# EOF") {
      ended_ = true;
    } else if (line.rfind("# HELP ", 0) == 0) {
      Help(line.substr(7));
    } else if (line.rfind("# TYPE ", 0) == 0) {
      Type(line.substr(7));
    } else if (line.empty() || line[0] == '#') {
      Error("neither HELP, TYPE nor a sample: " + line);
    } else {
      Sample(line);
    }
  }

  void Help(const std::string& rest) {
    const std::size_t space = rest.find(' ');
    family_ = rest.substr(0, space);
    if (!IsName(family_, true)) Error("no name: " + rest);
    if (space == std::string::npos || space + 1 == rest.size()) Error("no help for " + family_);
    if (result_.families.contains(family_)) Error(family_ + " comes twice");
    result_.families[family_].help = space == std::string::npos ? "" : rest.substr(space + 1);
  }

  void Type(const std::string& rest) {
    const std::size_t space = rest.find(' ');
    if (rest.substr(0, space) != family_) return Error("TYPE without HELP before it: " + rest);
    MetricFamily& family = result_.families[family_];
    if (!family.type.empty()) Error("a second TYPE of " + family_);
    family.type = rest.substr(space + 1);
    const std::string unknown = open_metrics_ ? "unknown" : "untyped";
    if (family.type != "counter" && family.type != "gauge" && family.type != "histogram" &&
        family.type != unknown)
      Error("no type that we have: " + rest);
    const bool total = family_.ends_with("_total");
    if (family.type == "counter" && total == open_metrics_) Error("a counter is not called " + family_);
    if (family.type != "counter" && total) Error("what is no counter is not called " + family_);
  }

  std::set<std::string> SampleNames() {
    const std::string& type = result_.families[family_].type;
    if (type == "histogram") return {family_ + "_bucket", family_ + "_sum", family_ + "_count"};
    if (type == "counter" && open_metrics_) return {family_ + "_total"};
    return {family_};
  }

  // Reads a label's value from behind its first quote, and moves past its last one.
  std::optional<std::string> Quoted(const std::string& line, std::size_t* at) {
    std::string value;
    for (; *at < line.size(); ++*at) {
      if (line[*at] == '"') {
        ++*at;
        return value;
      }
      if (line[*at] == '\\') {
        const char escaped = ++*at < line.size() ? line[*at] : ' ';
        if (escaped != '\\' && escaped != '"' && escaped != 'n') return std::nullopt;
        value += escaped == 'n' ? '\n' : escaped;
      } else {
        value += line[*at];
      }
    }
    return std::nullopt;
  }

  bool Labels(const std::string& line, std::size_t* at, MetricSample* sample) {
    while (*at < line.size() && line[*at] != '}') {
      const std::size_t equals = line.find("=\"", *at);
      if (equals == std::string::npos) return false;
      const std::string name = line.substr(*at, equals - *at);
      *at = equals + 2;
      const auto value = Quoted(line, at);
      if (!IsName(name, false) || !value || !sample->labels.emplace(name, *value).second) return false;
      if (*at < line.size() && line[*at] == ',') ++*at;
    }
    return *at < line.size() && line[(*at)++] == '}' && !sample->labels.empty();
  }

  void Sample(const std::string& line) {
    MetricSample sample;
    std::size_t at = line.find_first_of("{ ");
    if (at == std::string::npos) return Error("no sample: " + line);
    sample.name = line.substr(0, at);
    if (!SampleNames().contains(sample.name)) Error(sample.name + " is not of the family " + family_);
    if (line[at] == '{' && !Labels(line, &++at, &sample)) return Error("wrong labels: " + line);
    if (at >= line.size() || line[at] != ' ') return Error("no value: " + line);
    const std::string number = line.substr(at + 1);
    char* end = nullptr;
    sample.value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0') Error("no number: " + line);
    std::string key = sample.name;
    for (const auto& [name, value] : sample.labels) key.append("\n").append(name).append("=").append(value);
    if (!seen_.insert(key).second) Error("twice: " + line);
    result_.families[family_].samples.push_back(std::move(sample));
  }

  void CheckHistogram(const std::string& name, const MetricFamily& family) {
    if (family.type != "histogram") return;
    std::map<std::map<std::string, std::string>, std::pair<double, double>> last;  // bound, count
    for (const MetricSample& sample : family.samples) {
      auto labels = sample.labels;
      if (sample.name == name + "_count") {
        const auto& [bound, count] = last[labels];
        if (!std::isinf(bound) || count != sample.value) Error(name + ": _count is not that of +Inf");
      }
      if (sample.name != name + "_bucket") continue;
      const double bound = std::strtod(labels["le"].c_str(), nullptr);
      labels.erase("le");
      const auto before = last.emplace(labels, std::pair(-1.0, 0.0)).first;
      if (bound <= before->second.first || sample.value < before->second.second)
        Error(name + ": the buckets are out of order");
      before->second = {bound, sample.value};
    }
  }

  const std::string& text_;
  const bool open_metrics_;
  int number_ = 1;
  bool ended_ = false;
  std::string family_;
  std::set<std::string> seen_;
  MetricsText result_;
};

}  // namespace

const MetricSample* MetricsText::Find(const std::string& name,
                                      const std::map<std::string, std::string>& labels) const {
  for (const auto& [family_name, family] : families) {
    for (const MetricSample& sample : family.samples) {
      if (sample.name == name && sample.labels == labels) return &sample;
    }
  }
  return nullptr;
}

double MetricsText::Value(const std::string& name, const std::map<std::string, std::string>& labels) {
  const MetricSample* sample = Find(name, labels);
  if (sample == nullptr) {
    errors.push_back("there is no " + name + " with such labels");
    return std::numeric_limits<double>::quiet_NaN();
  }
  return sample->value;
}

MetricsText ParseMetrics(const std::string& text, bool open_metrics) {
  return Parser(text, open_metrics).Parse();
}

}  // namespace railhead::testing

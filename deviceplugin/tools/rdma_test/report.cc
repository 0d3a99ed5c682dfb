#include "deviceplugin/tools/rdma_test/report.h"

#include <cstdio>
#include <map>
#include <utility>

namespace railhead::rdma_test {
namespace {

double SpeedOf(const TestRecord& record) {
  return record.outcome->write.GigabitsPerSecond();
}

// More ends of the host are nearer to bare metal; among those the fastest.
bool IsBetterBaseline(const TestRecord& one, const TestRecord& other) {
  if (one.host_ends != other.host_ends) return one.host_ends > other.host_ends;
  return SpeedOf(one) > SpeedOf(other);
}

// By rail; of tests that did not fail.
std::map<std::string, const TestRecord*> Baselines(const std::vector<TestRecord>& records) {
  std::map<std::string, const TestRecord*> baselines;
  for (const TestRecord& record : records) {
    if (!record.outcome || record.host_ends == 0) continue;
    const TestRecord*& best = baselines[record.rail];
    if (best == nullptr || IsBetterBaseline(record, *best)) best = &record;
  }
  return baselines;
}

std::string Decimal(double number, int places) {
  char text[64];
  (void)std::snprintf(text, sizeof(text), "%.*f", places, number);
  return text;
}

}  // namespace

std::vector<std::optional<double>> PartsOfHost(const std::vector<TestRecord>& records) {
  const auto baselines = Baselines(records);
  std::vector<std::optional<double>> parts;
  parts.reserve(records.size());
  for (const TestRecord& record : records) {
    const auto found = baselines.find(record.rail);
    const bool comparable = record.outcome && found != baselines.end() && found->second != &record;
    if (comparable && SpeedOf(*found->second) > 0) {
      parts.emplace_back(SpeedOf(record) / SpeedOf(*found->second));
    } else {
      parts.emplace_back();
    }
  }
  return parts;
}

Report ReportOf(const std::vector<TestRecord>& records, const TestParameters& parameters, bool interrupted) {
  const auto parts = PartsOfHost(records);
  const auto baselines = Baselines(records);
  Report report{parameters.size, parameters.depth, parameters.seconds, interrupted, {}};
  for (std::size_t i = 0; i < records.size(); ++i) {
    const TestRecord& record = records[i];
    const auto baseline = baselines.find(record.rail);
    ReportedTest test{record.from, record.to, record.rail, std::nullopt, std::nullopt, parts[i]};
    test.is_baseline = baseline != baselines.end() && baseline->second == &record;
    if (record.outcome) {
      test.outcome = *record.outcome;
    } else {
      test.error = record.outcome.error();
    }
    report.tests.push_back(std::move(test));
  }
  return report;
}

std::string DevicesOf(const Outcome& outcome) {
  const auto where = [](const UsedEnd& end) {
    return end.device + "[" + std::to_string(end.gid_index) + "]";
  };
  return where(outcome.from) + " " + where(outcome.to);
}

// Small speeds are those of emulations: they shall not all read 0.0.
std::string SpeedOf(const Outcome& outcome) {
  const double gigabits = outcome.write.GigabitsPerSecond();
  return Decimal(gigabits, gigabits < 1 ? 4 : 1);
}

std::string PartOf(const ReportedTest& test) {
  if (test.part_of_host) return Decimal(*test.part_of_host * 100, 1) + " %";
  return test.is_baseline ? "baseline" : "";
}

std::string TimesOf(const Latency& latency) {
  return Decimal(latency.median_us, 2) + " / " + Decimal(latency.p99_us, 2);
}

}  // namespace railhead::rdma_test

#include "deviceplugin/tools/rdma_test/report.h"

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

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

// Small speeds are those of emulations: they shall not all read 0.0.
std::string Speed(double gigabits) {
  return Decimal(gigabits, gigabits < 1 ? 4 : 1);
}

std::string Pair(const Latency& latency) {
  return Decimal(latency.median_us, 2) + " / " + Decimal(latency.p99_us, 2);
}

std::string Where(const UsedEnd& end) {
  return end.device + "[" + std::to_string(end.gid_index) + "]";
}

nlohmann::json AsJson(const Latency& latency) {
  return {{"samples", latency.samples},
          {"minUs", latency.min_us},
          {"medianUs", latency.median_us},
          {"p99Us", latency.p99_us},
          {"maxUs", latency.max_us}};
}

nlohmann::json AsJson(const UsedEnd& end) {
  return {{"device", end.device}, {"gidIndex", end.gid_index}, {"gid", end.gid.ToString()}};
}

nlohmann::json AsJson(const TestRecord& record, const std::optional<double>& part) {
  nlohmann::json json = {{"from", record.from}, {"to", record.to}, {"rail", record.rail}};
  if (!record.outcome) {
    const Error& error = record.outcome.error();
    json["error"] = {{"code", NameOf(error.code)}, {"message", error.message}, {"hint", error.hint}};
    return json;
  }
  const Outcome& outcome = *record.outcome;
  json["fromEnd"] = AsJson(outcome.from);
  json["toEnd"] = AsJson(outcome.to);
  json["mtu"] = outcome.mtu;
  json["trafficClass"] = outcome.traffic_class;
  json["write"] = {{"gbitPerSecond", outcome.write.GigabitsPerSecond()},
                   {"bytes", outcome.write.bytes},
                   {"seconds", outcome.write.seconds}};
  json["writeLatency"] = AsJson(outcome.write_latency);
  json["sendLatency"] = AsJson(outcome.send_latency);
  if (part) json["partOfHost"] = *part;
  return json;
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

std::vector<std::vector<std::string>> ReportRows(const std::vector<TestRecord>& records) {
  const auto parts = PartsOfHost(records);
  const auto baselines = Baselines(records);
  std::vector<std::vector<std::string>> rows = {{"FROM", "TO", "RAIL", "DEVICES", "MTU", "WRITE Gbit/s",
                                                 "OF HOST", "WRITE us p50 / p99", "SEND us p50 / p99"}};
  for (std::size_t i = 0; i < records.size(); ++i) {
    const TestRecord& record = records[i];
    const std::string rail = record.rail.empty() ? "-" : record.rail;
    if (!record.outcome) {
      rows.push_back({record.from, record.to, rail, "failed: " + record.outcome.error().message});
      continue;
    }
    const Outcome& outcome = *record.outcome;
    const auto baseline = baselines.find(record.rail);
    const bool is_baseline = baseline != baselines.end() && baseline->second == &record;
    const std::string part = parts[i] ? Decimal(*parts[i] * 100, 1) + " %" : is_baseline ? "baseline" : "-";
    rows.push_back({record.from, record.to, rail, Where(outcome.from) + " " + Where(outcome.to),
                    std::to_string(outcome.mtu), Speed(outcome.write.GigabitsPerSecond()), part,
                    Pair(outcome.write_latency), Pair(outcome.send_latency)});
  }
  return rows;
}

nlohmann::json ReportAsJson(const std::vector<TestRecord>& records, const TestParameters& parameters,
                            bool interrupted) {
  const auto parts = PartsOfHost(records);
  nlohmann::json tests = nlohmann::json::array();
  for (std::size_t i = 0; i < records.size(); ++i) tests.push_back(AsJson(records[i], parts[i]));
  return {{"version", 1},
          {"size", parameters.size},
          {"depth", parameters.depth},
          {"secondsPerRun", parameters.seconds},
          {"interrupted", interrupted},
          {"tests", std::move(tests)}};
}

}  // namespace railhead::rdma_test

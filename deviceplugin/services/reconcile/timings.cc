#include "deviceplugin/services/reconcile/timings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace railhead {
namespace {

using Json = nlohmann::ordered_json;
using Times = std::vector<std::chrono::microseconds>;

Json Figures(Times times) {
  std::sort(times.begin(), times.end());
  const auto milliseconds = [](std::chrono::microseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  const auto percentile = [&](std::size_t percent) {
    const std::size_t rank = (times.size() * percent + 99) / 100;
    return milliseconds(times[std::max<std::size_t>(rank, 1) - 1]);
  };
  return {{"count", times.size()},
          {"p50", percentile(50)},
          {"p90", percentile(90)},
          {"p99", percentile(99)},
          {"max", milliseconds(times.back())}};
}

// In the order in which the phases come first.
class ByPhase {
 public:
  Times& operator[](const std::string& phase) {
    for (auto& [name, times] : all_) {
      if (name == phase) return times;
    }
    return all_.emplace_back(phase, Times{}).second;
  }
  [[nodiscard]] Json Figures() const {
    Json json = Json::object();
    for (const auto& [name, times] : all_) json[name] = railhead::Figures(times);
    return json;
  }

 private:
  std::vector<std::pair<std::string, Times>> all_;
};

}  // namespace

std::string TimingsAsJson(const std::vector<AttachTiming>& timings) {
  ByPhase phases;
  Times totals;
  std::size_t failed = 0;
  for (const auto& timing : timings) {
    if (!timing.error.empty()) {
      ++failed;
      continue;
    }
    std::chrono::microseconds total{0};
    for (const auto& [phase, took] : timing.phases) {
      phases[phase].push_back(took);
      total += took;
    }
    totals.push_back(total);
  }
  Json json;
  json["attached"] = totals.size();
  json["failed"] = failed;
  json["totalMs"] = totals.empty() ? Json(nullptr) : Figures(totals);
  json["phasesMs"] = phases.Figures();
  return json.dump(2);
}

}  // namespace railhead

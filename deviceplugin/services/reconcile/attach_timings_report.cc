#include "deviceplugin/services/reconcile/attach_timings_report.h"

#include <algorithm>
#include <chrono>

namespace railhead::reconcile {
namespace {

using Times = std::vector<std::chrono::microseconds>;

TimingFigures FiguresOf(Times times) {
  std::ranges::sort(times);
  const auto milliseconds = [](std::chrono::microseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  const auto percentile = [&](std::size_t percent) {
    const std::size_t rank = (times.size() * percent + 99) / 100;
    return milliseconds(times[std::max<std::size_t>(rank, 1) - 1]);
  };
  return {times.size(), percentile(50), percentile(90), percentile(99), milliseconds(times.back())};
}

Times& TimesOf(std::vector<std::pair<std::string, Times>>& phases, const std::string& phase) {
  for (auto& [name, times] : phases) {
    if (name == phase) return times;
  }
  return phases.emplace_back(phase, Times{}).second;
}

}  // namespace

TimingsReport ReportTimings(const std::vector<AttachTiming>& timings) {
  TimingsReport report;
  std::vector<std::pair<std::string, Times>> phases;
  Times totals;
  for (const auto& timing : timings) {
    if (!timing.error.empty()) {
      ++report.failed;
      continue;
    }
    std::chrono::microseconds total{0};
    for (const auto& [phase, took] : timing.phases) {
      TimesOf(phases, phase).push_back(took);
      total += took;
    }
    totals.push_back(total);
  }
  report.attached = totals.size();
  if (!totals.empty()) report.total = FiguresOf(totals);
  for (const auto& [name, times] : phases) report.phases.emplace_back(name, FiguresOf(times));
  return report;
}

}  // namespace railhead::reconcile

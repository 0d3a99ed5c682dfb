// TimingsReport: how long attachments took, phase by phase, in figures.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/state/attach_log.h"
#include "netns/json/record.h"

namespace railhead::reconcile {

// In milliseconds. Percentiles by the nearest rank, so that each is a time that was measured.
struct TimingFigures {
  std::size_t count = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;

  static void List(auto& f) {
    f("count", &TimingFigures::count);
    f("p50", &TimingFigures::p50);
    f("p90", &TimingFigures::p90);
    f("p99", &TimingFigures::p99);
    f("max", &TimingFigures::max);
  }
};

// Of the attachments that succeeded.
struct TimingsReport {
  std::size_t attached = 0;
  std::size_t failed = 0;
  std::optional<TimingFigures> total;
  std::vector<std::pair<std::string, TimingFigures>> phases;  // in the order in which they come first

  static void List(auto& f) {
    f("attached", &TimingsReport::attached);
    f("failed", &TimingsReport::failed);
    f("totalMs", &TimingsReport::total, kNullField);
    f("phasesMs", &TimingsReport::phases);
  }
};

TimingsReport ReportTimings(const std::vector<AttachTiming>& timings);

}  // namespace railhead::reconcile

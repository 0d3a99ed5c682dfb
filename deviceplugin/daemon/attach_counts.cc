#include "deviceplugin/daemon/attach_counts.h"

namespace railhead {

void AttachCounts::Count(const AttachTiming& timing) {
  if (!timing.error.empty()) {
    ++failed_;
    return;
  }
  ++attached_;
  std::chrono::microseconds total{0};
  for (const auto& [phase, took] : timing.phases) {
    total += took;
    if (phases_.size() < kMostPhases || phases_.contains(phase)) phases_[phase] += took;
  }
  duration_.Observe(total);
}

void AttachCounts::Append(Exposition* page) {
  const std::lock_guard lock(mutex_);
  if (const auto timings = tail_.Next()) {
    for (const AttachTiming& timing : *timings) Count(timing);
  }
  page->Begin(MetricType::kCounter, "railhead_attaches", "ADDs of the CNI plugin, by how they ended");
  page->Sample({{"outcome", "attached"}}, attached_);
  page->Sample({{"outcome", "failed"}}, failed_);
  page->Begin(MetricType::kHistogram, "railhead_attach_duration_seconds",
              "Time that ADDs took which attached their devices");
  page->Sample({}, duration_);
  page->Begin(MetricType::kCounter, "railhead_attach_phase_seconds",
              "Of that time, what each phase of ADD took");
  for (const auto& [phase, took] : phases_)
    page->Sample({{"phase", phase}}, std::chrono::duration<double>(took).count());
}

}  // namespace railhead

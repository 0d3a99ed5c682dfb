#include "deviceplugin/services/reconcile/attach_counts.h"

#include "netns/base/mutex.h"

namespace railhead::reconcile {

void AttachCounts::Read() {
  const MutexLock lock(mutex_);
  ReadLocked();
}

void AttachCounts::ReadLocked() {
  if (const auto timings = tail_.Next()) {
    for (const AttachTiming& timing : *timings) Count(timing);
  }
}

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
  const MutexLock lock(mutex_);
  ReadLocked();
  page->Begin(MetricType::kCounter, "railhead_cni_adds", "ADDs of the CNI plugin, by outcome");
  page->Sample({{"outcome", "attached"}}, attached_);
  page->Sample({{"outcome", "failed"}}, failed_);
  page->Begin(MetricType::kHistogram, "railhead_cni_add_duration_seconds",
              "Duration of ADDs that attached their devices");
  page->Sample({}, duration_);
  page->Begin(MetricType::kCounter, "railhead_cni_add_phase_seconds",
              "Part of that duration, by phase of ADD");
  for (const auto& [phase, took] : phases_)
    page->Sample({{"phase", phase}}, std::chrono::duration<double>(took).count());
}

}  // namespace railhead::reconcile

// DriftService: a check for drift now and then, never if the interval is 0 (drift_watch.h).
//
// Ownership: borrows kernel and log. Threads: as Service; drifted() from any. Errors: none; the log has what
// could not be checked.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <set>
#include <string_view>

#include "cni/state/journal.h"
#include "deviceplugin/services/reconcile/drift_watch.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/counter.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/service.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::reconcile {

class DriftService : public Service {
 public:
  DriftService(Root root, Kernel& kernel, std::chrono::seconds interval, Log* log)
      : interval_(interval), watch_(std::move(root), kernel), log_(log) {}

  [[nodiscard]] std::string_view name() const override { return "drift"; }
  void Register(MetricRegistry& metrics) override;
  Result<void> Run(Worker& worker) override;

  // The attachments that drifted at the latest check.
  [[nodiscard]] const Published<std::set<AttachmentKey>>& drifted() const { return drifted_; }

 private:
  const std::chrono::seconds interval_;
  DriftWatch watch_;
  Log* const log_;
  std::atomic<std::size_t> matching_{0};
  Counter drifts_;  // seen to begin
  Published<std::set<AttachmentKey>> drifted_;
};

}  // namespace railhead::reconcile

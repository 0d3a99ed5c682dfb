// ReconcileService: a pass of the reconciler now and then, never if the interval is 0 (reconciler.h).
//
// Ownership: borrows kernel, log and `restored`. Threads: as Service. Errors: none; the log has
// what a pass could not do, and the next pass tries again.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/services/reconcile/address_facts.h"
#include "deviceplugin/services/reconcile/attach_counts.h"
#include "deviceplugin/services/reconcile/reconcile_log.h"
#include "deviceplugin/services/reconcile/reconcile_report.h"
#include "deviceplugin/services/reconcile/reconciler.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/counter.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/metrics/time_of_day.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/service.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::reconcile {

class ReconcileService : public Service {
 public:
  // `restored` becomes true with the first pass: what ended pods had is restored as far as it can be.
  ReconcileService(const Root& root, Kernel& kernel, std::chrono::seconds interval, Published<bool>* restored,
                   Log* log)
      : interval_(interval), restored_(restored), reconciler_(root, kernel), log_(log), attaches_(root) {}

  [[nodiscard]] std::string_view name() const override { return "reconciler"; }
  void Register(MetricRegistry& metrics) override;
  Result<void> Run(Worker& worker) override;

 private:
  // The kind of an action of a pass, and its outcome.
  struct ActionKind {
    std::string what;
    bool failed = false;
    auto operator<=>(const ActionKind&) const = default;
  };
  struct Seen {
    std::size_t attachments = 0;
    std::size_t unreadable = 0;
    std::size_t displaced = 0;
    std::vector<PoolFacts> pools;  // as of the latest pass that could read them
    std::map<ActionKind, std::uint64_t> actions;
  };

  void Count(const ReconcileReport& report);
  void RegisterAddresses(MetricRegistry& metrics);

  const std::chrono::seconds interval_;
  Published<bool>* const restored_;
  Reconciler reconciler_;
  ReconcileLog log_;
  Counter passes_;
  TimeOfDay last_pass_;
  Counter ignored_answers_;  // of hosts that answer for many addresses
  Published<Seen> seen_;
  AttachCounts attaches_;
};

}  // namespace railhead::reconcile

#include "deviceplugin/services/reconcile/reconcile_service.h"

#include <utility>

#include "deviceplugin/services/reconcile/address_facts.h"
#include "deviceplugin/support/service/pass_pause.h"

namespace railhead::reconcile {
namespace {

// A pass waits some seconds for each NIC in a namespace that the kernel is deleting.
constexpr std::chrono::seconds kLongestPass{900};

}  // namespace

Result<void> ReconcileService::Run(Worker& worker) {
  while (interval_.count() == 0 && !worker.StopRequested()) worker.Wait(Worker::Clock::time_point::max());
  PassPause pause(interval_);
  while (!worker.StopRequested()) {
    worker.Busy(kLongestPass, "a pass over the node's attachments");
    const ReconcileReport report = reconciler_.Run(Reconciler::Clock::now(), worker.stop());
    Count(report);
    log_.Write(report);
    if (!*restored_->Get()) restored_->Set(true);
    attaches_.Read();
    worker.Wait(Worker::Clock::now() + pause.Next(reconciler_.IsUnfinished()));
  }
  return {};
}

void ReconcileService::Count(const ReconcileReport& report) {
  passes_.Add();
  last_pass_.SetNow();
  for (const ConflictSource& source : report.conflict_sources) ignored_answers_.Add(source.answers);
  Seen seen = *seen_.Get();
  seen.attachments = report.attachments;
  seen.unreadable = report.unreadable;
  seen.displaced = report.displaced;
  if (report.addresses) seen.pools = report.addresses->pools;
  for (const ReconcileAction& action : report.actions)
    ++seen.actions[{action.what, action.error.has_value()}];
  seen_.Set(std::move(seen));
}

void ReconcileService::Register(MetricRegistry& metrics) {
  metrics.Add("railhead_reconcile_passes", "Reconcile passes over NICs, addresses and files", passes_);
  metrics.Add(MetricType::kGauge, "railhead_reconcile_last_pass_timestamp_seconds",
              "Time of the end of the latest pass, in seconds since 1970",
              [this](Exposition& page) { page.Sample({}, last_pass_.seconds()); });
  metrics.Add(MetricType::kCounter, "railhead_reconcile_actions",
              "Items without a pod that passes cleaned up, by kind and outcome", [this](Exposition& page) {
                const auto seen = seen_.Get();
                for (const auto& [kind, count] : seen->actions)
                  page.Sample({{"kind", kind.what}, {"outcome", kind.failed ? "failed" : "done"}}, count);
              });
  const auto gauge = [&](const char* name, const char* help, std::size_t Seen::*which) {
    metrics.Add(MetricType::kGauge, name, help, [this, which](Exposition& page) {
      page.Sample({}, static_cast<std::uint64_t>((*seen_.Get()).*which));
    });
  };
  gauge("railhead_attachments", "Attachments of pods when the latest pass began", &Seen::attachments);
  gauge("railhead_unreadable_journal_entries",
        "Journal entries that could not be read when the latest pass began; their devices are Unhealthy",
        &Seen::unreadable);
  gauge("railhead_displaced_devices",
        "Devices under a substitute name on the host at the end of the latest pass", &Seen::displaced);
  RegisterAddresses(metrics);
  metrics.AddGroup([this](Exposition& page) { attaches_.Append(&page); });
}

void ReconcileService::RegisterAddresses(MetricRegistry& metrics) {
  metrics.Add(MetricType::kGauge, "railhead_ipam_addresses",
              "Addresses of a rail's subnet that are not free on this node, by state",
              [this](Exposition& page) {
                const auto seen = seen_.Get();
                for (const PoolFacts& pool : seen->pools) {
                  page.Sample({{"pool", pool.pool}, {"state", "held"}}, pool.held);
                  page.Sample({{"pool", pool.pool}, {"state", "cooling_down"}}, pool.cooling_down);
                  page.Sample({{"pool", pool.pool}, {"state", "quarantined"}}, pool.quarantined);
                }
              });
  const auto counter = [&](const char* name, const char* help, std::uint64_t ipam::PoolCounters::*which) {
    metrics.Add(MetricType::kCounter, name, help, [this, which](Exposition& page) {
      const auto seen = seen_.Get();
      for (const PoolFacts& pool : seen->pools) page.Sample({{"pool", pool.pool}}, pool.counters.*which);
    });
  };
  counter("railhead_ipam_allocations", "Addresses allocated to pods", &ipam::PoolCounters::allocated);
  counter("railhead_ipam_releases", "Addresses released; their reuse delay began",
          &ipam::PoolCounters::released);
  counter("railhead_ipam_early_reuses",
          "Addresses allocated before their reuse delay was over, because no other was free",
          &ipam::PoolCounters::early_reuses);
  counter("railhead_ipam_exhaustions", "ADDs refused because no address was free",
          &ipam::PoolCounters::exhausted);
  counter("railhead_ipam_quarantines", "Addresses put into quarantine, because another machine uses them",
          &ipam::PoolCounters::quarantined);
  metrics.Add("railhead_ipam_conflicts_ignored",
              "Answers to address probes that ADDs ignored, because one host answers for many addresses or "
              "too many hosts answer",
              ignored_answers_);
}

}  // namespace railhead::reconcile

#include "deviceplugin/services/reconcile/drift_service.h"

#include <cstdint>
#include <utility>

#include "deviceplugin/support/service/pass_pause.h"

namespace railhead::reconcile {
namespace {

// Each attachment costs some reads of the kernel's tables.
constexpr std::chrono::seconds kLongestCheck{900};

void LogDrift(Log* log, const DriftReport& report) {
  for (const Error& problem : report.problems)
    log->Warning("checking the NCCL configuration failed", problem);
  for (const auto& [key, drift] : report.began) {
    log->Warning("a pod's NICs differ from its NCCL configuration",
                 Error{ErrorCode::kConflict, drift,
                       "see railctl nccl verify; restart the pod to get a new configuration", 0},
                 {{"attachment", key.ToString()}});
  }
  for (const AttachmentKey& key : report.over)
    log->Info("a pod's NICs match its NCCL configuration again, or the pod is gone",
              {{"attachment", key.ToString()}});
}

}  // namespace

Result<void> DriftService::Run(Worker& worker) {
  while (interval_.count() == 0 && !worker.StopRequested()) worker.Wait(Worker::Clock::time_point::max());
  PassPause pause(interval_);
  while (!worker.StopRequested()) {
    worker.Busy(kLongestCheck, "comparing pods with their NCCL configurations");
    const DriftReport report = watch_.Check(worker.stop());
    matching_ = report.watched - report.drifted.size();
    drifts_.Add(report.began.size());
    std::set<AttachmentKey> drifted;
    for (const auto& [key, drift] : report.drifted) drifted.insert(key);
    drifted_.Set(std::move(drifted));
    LogDrift(log_, report);
    worker.Wait(Worker::Clock::now() + pause.Next());
  }
  return {};
}

void DriftService::Register(MetricRegistry& metrics) {
  metrics.Add(MetricType::kGauge, "railhead_nccl_configs",
              "Attachments of running pods with an NCCL configuration, by whether their NICs still match it",
              [this](Exposition& page) {
                page.Sample({{"state", "matching"}}, static_cast<std::uint64_t>(matching_));
                page.Sample({{"state", "drifted"}}, static_cast<std::uint64_t>(drifted_.Get()->size()));
              });
  metrics.Add("railhead_nccl_config_drifts",
              "Attachments whose NICs began to differ from their NCCL configuration", drifts_);
}

}  // namespace railhead::reconcile

#include "deviceplugin/daemon/events_log.h"

#include <utility>

#include "netns/base/text.h"

namespace railhead::daemon {

void LogEvent(Log* log, const kubelet::Event& event) {
  switch (event.kind) {
    case kubelet::EventKind::kServing:
      return log->Debug("serving", {{"resource", event.resource}, {"socket", event.detail}});
    case kubelet::EventKind::kRegistered:
      return log->Info("registered with kubelet", {{"resource", event.resource}, {"kubelet", event.detail}});
    case kubelet::EventKind::kRegisterFailed:
      return log->Warning("registration failed", *event.error, {{"resource", event.resource}});
    case kubelet::EventKind::kServeFailed:
      return log->Failure("serving failed", *event.error, {{"resource", event.resource}});
    case kubelet::EventKind::kKubeletGone:
      return log->Info("registering again", {{"resource", event.resource}, {"because", event.detail}});
    case kubelet::EventKind::kStandby:
      return log->Info("standby: a newer railheadd serves the resource",
                       {{"resource", event.resource}, {"socket", event.detail}});
    case kubelet::EventKind::kCall:
      break;
  }
  const std::string devices = Join(event.device_ids, ",");
  if (!event.rewritten.empty()) {
    log->Warning(
        "CDI specs were missing or changed and are written again: another program removes or changes them",
        {{"resource", event.resource}, {"devices", Join(event.rewritten, ",")}});
  }
  if (event.cdi_unread) {
    log->Warning("no container runtime read the CDI specs: check that CDI is enabled in its configuration",
                 {{"resource", event.resource}, {"devices", devices}});
  }
  if (event.error) {
    log->Warning("refused", *event.error,
                 {{"call", event.detail}, {"resource", event.resource}, {"devices", devices}});
  } else {
    log->Info("answered", {{"call", event.detail}, {"resource", event.resource}, {"devices", devices}});
  }
}

void LogPlan(Log* log, const resources::Plan& plan) {
  for (const std::string& rail : plan.absent_rails) {
    log->Warning("this node has no PF for a rail", {{"rail", rail}, {"config", plan.config_path}});
  }
  for (const auto& pool : plan.pools) {
    log->Info("advertising",
              {{"resource", pool->spec.resource}, {"devices", std::to_string(pool->members.size())}});
  }
}

void LogPlanChange(Log* log, const PlanChange& change) {
  for (const PlanChange::Warning& warning : change.warnings) log->Warning(warning.what, warning.why);
  if (!change.note.empty()) log->Info(change.note);
  if (!change.warnings.empty() || !change.note.empty()) return;
  if (change.error)
    return log->Failure("discovery failed; the last valid configuration stays in use", *change.error);
  if (change.resources.empty()) log->Info("discovery succeeds again");
  for (const auto& [resource, devices] : change.resources) {
    log->Info("advertised devices changed", {{"resource", resource},
                                             {"added", Join(devices.added, ",")},
                                             {"removed", Join(devices.removed, ",")}});
  }
}

void LogBinding(Log* log, const BindRequest& request, const Result<Bindings>& answer) {
  const std::string slots = Join(request.slots, ",");
  if (!answer) {
    return log->Warning(
        "binding slots failed", answer.error(),
        {{"container_id", request.container_id}, {"pod_uid", request.pod_uid}, {"slots", slots}});
  }
  std::vector<std::string> devices;
  devices.reserve(answer->size());
  for (const auto& [slot, device] : *answer) devices.push_back(device);
  log->Info("bound", {{"container_id", request.container_id},
                      {"pod_uid", request.pod_uid},
                      {"slots", slots},
                      {"devices", Join(devices, ",")}});
}

void LogHealth(Log* log, const health::HealthTick& tick) {
  for (const Error& problem : tick.problems) log->Warning("health is unknown", problem);
  for (const health::HealthChange& change : tick.changes) {
    std::vector<std::string> reasons;
    reasons.reserve(change.reasons.size());
    for (const health::HealthReason& reason : change.reasons) {
      std::string text(NameOf(reason.rule));
      reasons.push_back(text.append(" of ").append(reason.device).append(": ").append(reason.text));
    }
    const Log::Fields fields = {{"device", change.device}, {"because", Join(reasons, "; ")}};
    if (change.healthy) {
      log->Info("healthy again", fields);
    } else if (change.flipped) {
      log->Warning("unhealthy", fields);
    } else {
      log->Info("unhealthy for other reasons", fields);
    }
  }
}

void LogDrift(Log* log, const reconcile::DriftReport& report) {
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

void ReportLog::LogAddressEvent(const ipam::AddressEvent& event) {
  const Log::Fields fields = {{"event", std::string(NameOf(event.kind))}, {"pool", event.pool}};
  if (event.kind == ipam::AddressEventKind::kNewBoot) return log_->Info(reconcile::Sentence(event), fields);
  log_->Warning(reconcile::Sentence(event), fields);
}

void ReportLog::Write(const reconcile::ReconcileReport& report) {
  if (report.addresses) {
    for (const ipam::AddressEvent& event : report.addresses->events) LogAddressEvent(event);
  }
  for (const ConflictSource& source : report.conflict_sources) {
    if (source.pf.empty()) {
      log_->Warning("one host answers for many addresses; ADDs use them nevertheless",
                    Error{ErrorCode::kConflict, source.ToString(),
                          "if it is a pod, delete it; if it is a router, switch proxy ARP off", 0},
                    {{"mac", source.mac.ToString()}, {"pod", source.pod}});
    } else {
      log_->Warning(
          "many hosts answer for addresses of a rail; ADDs use them nevertheless",
          Error{ErrorCode::kConflict, source.ToString(),
                "if they are one pod, which changes its MAC, delete it; else give each node and each "
                "other host addresses of its own",
                0},
          {{"pf", source.pf}, {"mac", source.mac.ToString()}, {"pod", source.pod}});
    }
  }
  std::set<std::string> failures;
  for (const auto& action : report.actions) {
    if (!action.error) {
      log_->Info("reconciled", {{"what", action.what}, {"name", action.name}, {"because", action.reason}});
      continue;
    }
    const std::string failure = action.what + " " + action.name + " " + action.error->message;
    if (known_failures_.contains(failure)) {
      log_->Debug("still not reconciled", {{"what", action.what}, {"name", action.name}});
    } else {
      log_->Warning("not reconciled", *action.error,
                    {{"what", action.what}, {"name", action.name}, {"because", action.reason}});
    }
    failures.insert(failure);
  }
  known_failures_ = std::move(failures);
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
  const std::lock_guard lock(mutex_);
  if (const auto timings = tail_.Next()) {
    for (const AttachTiming& timing : *timings) Count(timing);
  }
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

}  // namespace railhead::daemon

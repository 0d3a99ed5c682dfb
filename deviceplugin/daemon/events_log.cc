#include "deviceplugin/daemon/events_log.h"

#include <utility>

#include "netns/base/text.h"

namespace railhead {

void LogEvent(Log* log, const Event& event) {
  switch (event.kind) {
    case EventKind::kServing:
      return log->Debug("serving", {{"resource", event.resource}, {"socket", event.detail}});
    case EventKind::kRegistered:
      return log->Info("registered with kubelet", {{"resource", event.resource}, {"kubelet", event.detail}});
    case EventKind::kRegisterFailed:
      return log->Warning("not registered", *event.error, {{"resource", event.resource}});
    case EventKind::kServeFailed:
      return log->Failure("cannot serve", *event.error, {{"resource", event.resource}});
    case EventKind::kKubeletGone:
      return log->Info("registering again", {{"resource", event.resource}, {"because", event.detail}});
    case EventKind::kStandingBy:
      return log->Info("standing by: a newer railheadd serves the resource",
                       {{"resource", event.resource}, {"socket", event.detail}});
    case EventKind::kCall:
      break;
  }
  const std::string devices = Join(event.device_ids, ",");
  if (event.error) {
    log->Warning("refused", *event.error,
                 {{"call", event.detail}, {"resource", event.resource}, {"devices", devices}});
  } else {
    log->Info("answered", {{"call", event.detail}, {"resource", event.resource}, {"devices", devices}});
  }
}

void LogPlan(Log* log, const Plan& plan) {
  for (const std::string& rail : plan.absent_rails) {
    log->Warning("this node has no PF for a rail", {{"rail", rail}, {"config", plan.config_path}});
  }
  for (const auto& pool : plan.pools) {
    log->Info("advertising",
              {{"resource", pool->spec.resource}, {"devices", std::to_string(pool->members.size())}});
  }
}

void LogRepeated(Log* log, const AttachmentKey& key, const Result<Repeated>& repeated) {
  const std::string name = key.container_id.empty() ? std::string() : key.ToString();
  if (!repeated) return log->Warning("announcement not repeated", repeated.error(), {{"attachment", name}});
  const char* outcome = *repeated == Repeated::kSent   ? "sent"
                        : *repeated == Repeated::kBusy ? "busy"
                                                       : "gone";
  log->Debug("announcement repeated", {{"attachment", name}, {"outcome", outcome}});
}

void ReportLog::Write(const ReconcileReport& report) {
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

}  // namespace railhead

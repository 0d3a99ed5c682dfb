#include "deviceplugin/services/reconcile/reconcile_log.h"

#include <utility>

#include "deviceplugin/services/reconcile/address_facts.h"

namespace railhead::reconcile {

void ReconcileLog::LogAddressEvent(const ipam::AddressEvent& event) {
  const Log::Fields fields = {{"event", std::string(NameOf(event.kind))}, {"pool", event.pool}};
  if (event.kind == ipam::AddressEventKind::kNewBoot) return log_->Info(Sentence(event), fields);
  log_->Warning(Sentence(event), fields);
}

void ReconcileLog::LogConflictSource(const ConflictSource& source) {
  if (source.pf.empty()) {
    return log_->Warning("one host answers for many addresses; ADDs use them nevertheless",
                         Error{ErrorCode::kConflict, source.ToString(),
                               "if it is a pod, delete it; if it is a router, switch proxy ARP off", 0},
                         {{"mac", source.mac.ToString()}, {"pod", source.pod}});
  }
  log_->Warning("many hosts answer for addresses of a rail; ADDs use them nevertheless",
                Error{ErrorCode::kConflict, source.ToString(),
                      "if they are one pod, which changes its MAC, delete it; else give each node and each "
                      "other host addresses of its own",
                      0},
                {{"pf", source.pf}, {"mac", source.mac.ToString()}, {"pod", source.pod}});
}

void ReconcileLog::Write(const reconcile::ReconcileReport& report) {
  if (report.addresses) {
    for (const ipam::AddressEvent& event : report.addresses->events) LogAddressEvent(event);
  }
  for (const ConflictSource& source : report.conflict_sources) LogConflictSource(source);
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

}  // namespace railhead::reconcile

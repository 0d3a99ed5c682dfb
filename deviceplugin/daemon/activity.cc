#include "deviceplugin/daemon/activity.h"

namespace railhead::daemon {

void Activity::SetAdvertisement(const kubelet::Advertisement& advertisement) {
  const std::lock_guard<std::mutex> lock(mutex_);
  advertisement_ = advertisement;
}

kubelet::Advertisement Activity::advertisement() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return advertisement_;
}

void Activity::Bound(const Result<Bindings>& answer, std::chrono::nanoseconds duration) {
  bind_duration.Observe(duration);
  (answer ? bound : not_bound.at(static_cast<std::size_t>(answer.error().code))).Add();
}

void Activity::Reconciled(const reconcile::ReconcileReport& report) {
  passes.Add();
  last_pass.SetNow();
  attachments = report.attachments;
  unreadable_entries = report.unreadable;
  displaced_devices = report.displaced;
  for (const ConflictSource& source : report.conflict_sources) ignored_answers.Add(source.answers);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (report.addresses) address_pools_ = report.addresses->pools;
  for (const reconcile::ReconcileAction& action : report.actions)
    ++reconcile_actions_[{action.what, action.error.has_value()}];
}

std::map<Activity::ReconcileKind, std::uint64_t> Activity::reconcile_actions() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reconcile_actions_;
}

std::vector<reconcile::PoolFacts> Activity::address_pools() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return address_pools_;
}

void Activity::Judged(const health::HealthTick& tick) {
  for (const health::HealthChange& change : tick.changes) {
    for (const health::HealthReason& reason : change.started)
      fired.at(static_cast<std::size_t>(reason.rule)).Add();
    for (const health::HealthReason& reason : change.ended)
      cleared.at(static_cast<std::size_t>(reason.rule)).Add();
  }
}

void Activity::Watched(const reconcile::DriftReport& report) {
  matching = report.watched - report.drifted.size();
  drifted = report.drifted.size();
  drifts.Add(report.began.size());
  std::set<AttachmentKey> keys;
  for (const auto& [key, drift] : report.drifted) keys.insert(key);
  const std::lock_guard<std::mutex> lock(mutex_);
  drifted_attachments_ = std::move(keys);
}

std::set<AttachmentKey> Activity::drifted_attachments() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return drifted_attachments_;
}

}  // namespace railhead::daemon

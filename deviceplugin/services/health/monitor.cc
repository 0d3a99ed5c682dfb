#include "deviceplugin/services/health/monitor.h"

#include <algorithm>
#include <array>

#include "deviceplugin/services/health/judge.h"
#include "deviceplugin/services/health/rate_window.h"
#include "netns/sys/pci_address.h"

namespace railhead::health {
namespace {

bool SameTrouble(const HealthReason& a, const HealthReason& b) {
  return a.rule == b.rule && a.device == b.device;
}

// The members of `these` that are not among `others`.
std::vector<HealthReason> Without(const std::vector<HealthReason>& these,
                                  const std::vector<HealthReason>& others) {
  std::vector<HealthReason> left;
  for (const HealthReason& reason : these) {
    const bool there =
        std::ranges::any_of(others, [&](const HealthReason& other) { return SameTrouble(reason, other); });
    if (!there) left.push_back(reason);
  }
  return left;
}

}  // namespace

void HealthMonitor::SetRules(HealthRules rules) {
  if (rules == rules_) return;
  rules_ = std::move(rules);
  // The steps of the old windows do not fit windows of another length, so counting starts again.
  for (auto& [id, device] : devices_) device.windows.clear();
}

void HealthMonitor::Restore(const std::vector<DeviceHealth>& saved, HealthTime now) {
  for (const DeviceHealth& known : saved) {
    Device& device = devices_[known.id];
    device.shown = known;
    for (const HealthReason& reason : known.reasons) {
      if (reason.device != known.id) continue;  // the PF's, which restores it
      device.trackers.push_back({reason, true, now.steady, std::nullopt});
      RestoreCounter(&device, reason, now);
    }
  }
  for (const DeviceHealth& known : saved) RestoreOfPf(known, now);
}

// Restores a fault of a PF that only its VFs show.
void HealthMonitor::RestoreOfPf(const DeviceHealth& vf, HealthTime now) {
  const auto pf = devices_.find(vf.pf);
  if (!vf.is_vf || pf == devices_.end()) return;
  auto& trackers = pf->second.trackers;
  for (const HealthReason& reason : vf.reasons) {
    if (reason.device != vf.pf || reason.rule != HealthRule::kVfCount) continue;
    const bool known = std::ranges::any_of(
        trackers, [](const Tracker& tracker) { return tracker.reason.rule == HealthRule::kVfCount; });
    if (!known) trackers.push_back({reason, true, now.steady, std::nullopt});
  }
}

// The file does not have the window. When the rule fired, the window was full.
void HealthMonitor::RestoreCounter(Device* device, const HealthReason& reason, HealthTime now) const {
  for (const CounterLimit& limit : rules_.Of(reason.rule).counters) {
    if (limit.counter != reason.counter) continue;
    const auto age = std::clamp<std::chrono::steady_clock::duration>(
        now.wall - reason.since, std::chrono::steady_clock::duration::zero(), limit.window);
    RateWindow window(limit.window);
    window.Add(limit.limit + 1, now.steady - age);
    device->windows.emplace(std::pair(reason.rule, limit.counter), std::move(window));
  }
}

HealthMonitor::Device& HealthMonitor::DeviceOf(const HealthSubject& subject, HealthTime now) {
  const auto [at, is_new] = devices_.try_emplace(subject.id);
  DeviceHealth& shown = at->second.shown;
  if (is_new) {
    shown.id = subject.id;
    shown.since = now.wall;
  }
  shown.is_vf = subject.is_vf;
  shown.pf = subject.pf_id;
  // A PF whose network device is away for the moment keeps its name.
  if (!subject.pf_name.empty()) shown.pf_name = subject.pf_name;
  return at->second;
}

Verdict HealthMonitor::JudgeCounters(Device* device, HealthRule rule, const HealthSubject& subject,
                                     const Observation& seen, HealthTime now) const {
  Verdict worst;
  for (const CounterLimit& limit : rules_.Of(rule).counters) {
    const std::pair key(rule, limit.counter);
    auto at = device->windows.find(key);
    for (const ObservedCounter& counter : seen.counters) {
      if (counter.rule != rule || counter.name != limit.counter) continue;
      if (at == device->windows.end()) at = device->windows.emplace(key, RateWindow(limit.window)).first;
      at->second.Read(counter.value, now.steady);
    }
    if (at == device->windows.end() || worst.kind == Verdict::Kind::kBad) continue;
    worst = JudgeRises(limit, subject, at->second.Sum(now.steady));
  }
  return worst;
}

bool HealthMonitor::Update(Device* device, HealthRule rule, const Verdict& verdict, HealthTime now) const {
  const RuleSettings& settings = rules_.Of(rule);
  auto& trackers = device->trackers;
  auto at =
      std::ranges::find_if(trackers, [&](const Tracker& tracker) { return tracker.reason.rule == rule; });
  const auto clear = [&] {
    const bool held = at != trackers.end() && at->holds;
    if (at != trackers.end()) trackers.erase(at);
    return held;
  };
  if (!settings.enabled || verdict.kind == Verdict::Kind::kExempt) return clear();
  if (verdict.kind == Verdict::Kind::kBad) {
    if (at == trackers.end()) at = trackers.insert(at, {{}, false, now.steady, std::nullopt});
    at->good_since.reset();
    if (at->holds) return false;
    at->reason = {rule, device->shown.id, verdict.counter, verdict.text, now.wall};
    at->holds = now.steady - at->bad_since >= settings.down_after;
    return at->holds;
  }
  if (at == trackers.end()) return false;
  if (!at->holds) return clear();
  if (verdict.kind == Verdict::Kind::kUnknown) {
    at->good_since.reset();
    return false;
  }
  if (!at->good_since) at->good_since = now.steady;
  return now.steady - *at->good_since >= settings.up_after ? clear() : false;
}

std::vector<HealthReason> HealthMonitor::ReasonsFor(const Device& device) const {
  std::vector<HealthReason> reasons;
  const auto take = [&](const Device& from, bool for_vf) {
    for (const Tracker& tracker : from.trackers) {
      const bool of_vfs = tracker.reason.rule == HealthRule::kVfCount;
      if (tracker.holds && (for_vf || !of_vfs)) reasons.push_back(tracker.reason);
    }
  };
  take(device, device.shown.is_vf);
  if (device.shown.is_vf) {
    const auto pf = devices_.find(device.shown.pf);
    // A subfunction does not care how many VFs there are.
    if (pf != devices_.end()) take(pf->second, PciAddress::Parse(device.shown.id).has_value());
  }
  std::ranges::stable_sort(reasons,
                           [](const HealthReason& a, const HealthReason& b) { return a.rule < b.rule; });
  return reasons;
}

void HealthMonitor::Show(Device* device, HealthTime now, std::vector<HealthChange>* changes) const {
  DeviceHealth& shown = device->shown;
  std::vector<HealthReason> reasons = ReasonsFor(*device);
  HealthChange change;
  change.started = Without(reasons, shown.reasons);
  change.ended = Without(shown.reasons, reasons);
  const bool healthy = reasons.empty();
  change.flipped = healthy != shown.healthy;
  shown.reasons = std::move(reasons);
  if (!change.flipped && change.started.empty() && change.ended.empty()) return;
  if (change.flipped) shown.since = now.wall;
  shown.healthy = healthy;
  change.device = shown.id;
  change.is_vf = shown.is_vf;
  change.pf = shown.pf;
  change.healthy = healthy;
  change.reasons = shown.reasons;
  change.time = now.wall;
  changes->push_back(std::move(change));
}

std::vector<HealthChange> HealthMonitor::Observe(const HealthSubject& subject, const Observation& seen,
                                                 HealthTime now) {
  Device& device = DeviceOf(subject, now);
  bool changed = false;
  for (const HealthRule rule : AllHealthRules()) {
    Verdict verdict = Judge(rule, subject, seen);
    if (!rules_.Of(rule).counters.empty()) verdict = JudgeCounters(&device, rule, subject, seen, now);
    changed = Update(&device, rule, verdict, now) || changed;
  }
  std::vector<HealthChange> changes;
  Show(&device, now, &changes);
  if (!changed || subject.is_vf) return changes;
  for (auto& [id, other] : devices_) {
    if (other.shown.is_vf && other.shown.pf == subject.id) Show(&other, now, &changes);
  }
  return changes;
}

void HealthMonitor::Renew(const std::string& id) {
  const auto device = devices_.find(id);
  if (device == devices_.end()) return;
  std::erase_if(device->second.trackers,
                [](const Tracker& tracker) { return tracker.reason.rule != HealthRule::kVfCount; });
}

bool HealthMonitor::KeepOnly(const std::set<std::string>& ids) {
  return std::erase_if(devices_, [&](const auto& device) { return !ids.contains(device.first); }) > 0;
}

const DeviceHealth* HealthMonitor::Find(const std::string& id) const {
  const auto at = devices_.find(id);
  return at == devices_.end() ? nullptr : &at->second.shown;
}

std::vector<DeviceHealth> HealthMonitor::All() const {
  std::vector<DeviceHealth> all;
  all.reserve(devices_.size());
  for (const auto& [id, device] : devices_) all.push_back(device.shown);
  return all;
}

bool HealthMonitor::IsSettled(const std::string& id) const {
  const auto at = devices_.find(id);
  return at != devices_.end() && at->second.trackers.empty();
}

}  // namespace railhead::health

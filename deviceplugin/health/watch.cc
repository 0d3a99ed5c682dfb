#include "deviceplugin/health/watch.h"

#include <algorithm>

namespace railhead {
namespace {

HealthSubject SubjectOf(const NicFunction& function, const HealthWatch::InUse& in_use) {
  HealthSubject subject;
  subject.id = function.id;
  subject.pf_id = function.pf.ToString();
  subject.is_vf = function.is_vf || subject.pf_id != subject.id;
  subject.pf_name = function.pf_name;
  subject.vf_count = function.vf_count;
  subject.in_use = in_use && in_use(function.id);
  return subject;
}

// PFs first: their trouble reaches their VFs. PFs that the inventory does not have, but
// whose VFs it has, are watched too.
std::vector<HealthSubject> SubjectsOf(const std::vector<NicFunction>& functions,
                                      const HealthWatch::InUse& in_use) {
  std::vector<HealthSubject> subjects;
  subjects.reserve(functions.size());
  std::map<std::string, HealthSubject> pfs;
  for (const NicFunction& function : functions) {
    HealthSubject subject = SubjectOf(function, in_use);
    if (!subject.is_vf) {
      pfs[subject.id] = std::move(subject);
      continue;
    }
    HealthSubject& pf = pfs[subject.pf_id];
    if (pf.id.empty()) {
      pf.id = pf.pf_id = subject.pf_id;
      pf.pf_name = subject.pf_name;
    }
    if (function.is_vf) pf.vf_count = std::max(pf.vf_count, function.vf_index + 1);
    subjects.push_back(std::move(subject));
  }
  std::vector<HealthSubject> all;
  all.reserve(pfs.size() + subjects.size());
  for (auto& [id, pf] : pfs) all.push_back(std::move(pf));
  std::move(subjects.begin(), subjects.end(), std::back_inserter(all));
  return all;
}

}  // namespace

HealthWatch::HealthWatch(Root root, HealthRules rules, std::unique_ptr<DriverSource> source)
    : root_(std::move(root)),
      rules_(std::move(rules)),
      source_(std::move(source)),
      probe_(root_, source_.get()),
      monitor_(rules_) {
  auto state = ReadHealthState(root_);
  if (!state) {
    Error error = Wrap(std::move(state.error()), "taking up the health of an earlier process");
    error.hint = "every device begins as healthy; the file is written anew";
    at_start_.push_back(std::move(error));
  } else if (*state) {
    monitor_.Restore((*state)->devices, HealthTime::Now());
    history_ = std::move((*state)->history);
  }
}

void HealthWatch::SetRules(HealthRules rules) {
  rules_ = rules;
  hurry_ = true;
  const std::lock_guard lock(mutex_);
  monitor_.SetRules(std::move(rules));
}

bool HealthWatch::IsVfDue(const std::string& id, Steady now) const {
  const auto read = vf_read_.find(id);
  if (read == vf_read_.end() || now - read->second >= rules_.vf_interval) return true;
  const std::lock_guard lock(mutex_);
  return !monitor_.IsSettled(id);
}

void HealthWatch::ObserveOne(const HealthSubject& subject, HealthTime now, HealthTick* tick) {
  auto seen = probe_.Read(subject, rules_, counters_now_ && !subject.is_vf, &tick->problems);
  if (!seen) {
    tick->problems.push_back(Wrap(std::move(seen.error()), "observing " + subject.id));
    return;
  }
  const std::lock_guard lock(mutex_);
  auto changes = monitor_.Observe(subject, *seen, now);
  std::move(changes.begin(), changes.end(), std::back_inserter(tick->changes));
}

HealthTick HealthWatch::Tick(const std::vector<NicFunction>& functions, const InUse& in_use, HealthTime now) {
  HealthTick tick;
  tick.problems = std::move(at_start_);
  at_start_.clear();
  counters_now_ = hurry_ || now.steady - counters_read_ >= rules_.counter_interval;
  if (counters_now_) counters_read_ = now.steady;
  std::set<std::string> ids;
  for (const HealthSubject& subject : SubjectsOf(functions, in_use)) {
    ids.insert(subject.id);
    if (subject.is_vf) {
      if (!hurry_ && !IsVfDue(subject.id, now.steady)) continue;
      vf_read_[subject.id] = now.steady;
    }
    ObserveOne(subject, now, &tick);
  }
  hurry_ = false;
  probe_.KeepOnly(ids);
  std::erase_if(vf_read_, [&](const auto& read) { return !ids.contains(read.first); });
  bool changed = !tick.changes.empty();
  {
    const std::lock_guard lock(mutex_);
    changed = monitor_.KeepOnly(ids) || changed;
  }
  Save(changed, &tick);
  TellOnce(&tick.problems);
  return tick;
}

void HealthWatch::Save(bool changed, HealthTick* tick) {
  AppendHistory(tick->changes, &history_);
  if (saved_ && !changed) return;
  // Only this thread writes the monitor: reading it needs no lock here.
  auto written = WriteHealthState(root_, {monitor_.All(), history_});
  saved_ = written.has_value();
  if (!written) tick->problems.push_back(std::move(written.error()));
}

void HealthWatch::TellOnce(std::vector<Error>* problems) {
  std::set<std::string> now;
  std::erase_if(*problems, [&](const Error& problem) {
    return !now.insert(problem.message).second || told_.contains(problem.message);
  });
  told_ = std::move(now);
}

bool HealthWatch::IsHealthy(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const DeviceHealth* device = monitor_.Find(id);
  return device == nullptr || device->healthy;
}

std::vector<HealthReason> HealthWatch::Reasons(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const DeviceHealth* device = monitor_.Find(id);
  return device == nullptr ? std::vector<HealthReason>{} : device->reasons;
}

std::vector<DeviceHealth> HealthWatch::All() const {
  const std::lock_guard lock(mutex_);
  return monitor_.All();
}

}  // namespace railhead

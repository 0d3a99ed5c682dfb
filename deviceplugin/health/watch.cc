#include "deviceplugin/health/watch.h"

#include <algorithm>
#include <map>

namespace railhead {
namespace {

HealthSubject SubjectOf(const NicFunction& function) {
  HealthSubject subject;
  subject.id = function.id;
  subject.pf_id = function.pf.ToString();
  subject.is_vf = function.is_vf || subject.pf_id != subject.id;
  subject.pf_name = function.pf_name;
  subject.vf_count = function.vf_count;
  return subject;
}

// PFs first: their trouble reaches their VFs. PFs that the inventory does not have, but
// whose VFs it has, are watched too.
std::vector<HealthSubject> SubjectsOf(const std::vector<NicFunction>& functions) {
  std::vector<HealthSubject> subjects;
  subjects.reserve(functions.size());
  std::map<std::string, HealthSubject> pfs;
  for (const NicFunction& function : functions) {
    HealthSubject subject = SubjectOf(function);
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

// Most ticks come without a change of the node: who is to be watched is not worked out again.
bool HealthWatch::Follow(const std::vector<NicFunction>& functions) {
  if (functions_ == functions) return false;
  functions_ = functions;
  std::map<std::string, std::optional<Steady>> read;
  for (const Watched& watched : watched_) read[watched.subject.id] = watched.read;
  watched_.clear();
  std::set<std::string> ids;
  auto subjects = SubjectsOf(functions);
  watched_.reserve(subjects.size());
  for (HealthSubject& subject : subjects) {
    ids.insert(subject.id);
    const auto before = read.find(subject.id);
    watched_.push_back({std::move(subject), before == read.end() ? std::nullopt : before->second});
  }
  probe_.KeepOnly(ids);
  const std::lock_guard lock(mutex_);
  return monitor_.KeepOnly(ids);
}

bool HealthWatch::IsVfDue(const Watched& watched, Steady now) const {
  if (!watched.read || now - *watched.read >= rules_.vf_interval) return true;
  const std::lock_guard lock(mutex_);
  return !monitor_.IsSettled(watched.subject.id);
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
  const bool forgotten = Follow(functions);
  for (Watched& watched : watched_) {
    HealthSubject& subject = watched.subject;
    if (subject.is_vf && !hurry_ && !IsVfDue(watched, now.steady)) continue;
    watched.read = now.steady;
    subject.in_use = in_use && in_use(subject.id);
    ObserveOne(subject, now, &tick);
  }
  hurry_ = false;
  const bool changed = forgotten || !tick.changes.empty();
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

#include "deviceplugin/services/health/watch.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "deviceplugin/services/health/probe.h"
#include "netns/base/files.h"
#include "netns/base/root.h"

namespace railhead::health {
namespace {

// After this time, everyone who wanted to act on it has done so.
constexpr std::chrono::hours kRemembered{24};

HealthSubject SubjectOf(const inventory::NicFunction& function) {
  HealthSubject subject;
  subject.id = function.id;
  subject.pf_id = function.pf.ToString();
  subject.is_vf = function.is_vf || subject.pf_id != subject.id;
  subject.pf_name = function.pf_name;
  subject.vf_count = function.vf_count;
  return subject;
}

// PFs first: their faults reach their VFs. A PF that the inventory lacks, but whose VFs it has, is watched
// too.
std::vector<HealthSubject> SubjectsOf(const std::vector<inventory::NicFunction>& functions) {
  std::vector<HealthSubject> subjects;
  subjects.reserve(functions.size());
  std::map<std::string, HealthSubject> pfs;
  for (const inventory::NicFunction& function : functions) {
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

// When an earlier process saw that it was gone, or now.
std::chrono::system_clock::time_point LostSince(const DeviceHealth& device,
                                                std::chrono::system_clock::time_point now) {
  for (const HealthReason& reason : device.reasons) {
    if (reason.rule == HealthRule::kGone || reason.rule == HealthRule::kVfCount)
      now = std::min(now, reason.since);
  }
  return now;
}

}  // namespace

struct HealthWatch::PfReader {
  PfReader(const Root& root, std::unique_ptr<DriverSource> of_pf)
      : source(std::move(of_pf)), probe(root, source.get()) {}

  const std::unique_ptr<DriverSource> source;
  HealthProbe probe;
};

HealthWatch::HealthWatch(Root root, HealthRules rules, OpenDriverSource open_source, ProbeWorkers& probes,
                         HealthTime now)
    : root_(std::move(root)),
      rules_(std::make_shared<const HealthRules>(std::move(rules))),
      open_source_(std::move(open_source)),
      probes_(probes),
      drains_(root_),
      unready_(root_),
      recorder_(root_),
      monitor_(*rules_) {
  auto state = kHealthFile.Read(root_);
  if (!state) {
    Error error = Wrap(std::move(state.error()), "taking up the health of an earlier process");
    error.hint = "every device starts as healthy, and railheadd writes a new file";
    at_start_.push_back(std::move(error));
  } else if (*state) {
    monitor_.Restore((*state)->devices, now);
    history_ = std::move((*state)->history);
  }
}

void HealthWatch::SetRules(HealthRules rules) {
  rules_ = std::make_shared<const HealthRules>(rules);
  read_all_now_ = true;
  functions_.reset();  // the rules decide which gone devices are watched
  monitor_.SetRules(std::move(rules));
}

// Most ticks come without a change of the node. Then the list of watched devices stays.
bool HealthWatch::Follow(const std::vector<inventory::NicFunction>& functions, HealthTime now) {
  if (functions_ == functions && now.wall < forget_at_) return false;
  functions_ = functions;
  std::map<std::string, Watched> before;
  for (Watched& watched : watched_) before[watched.subject.id] = std::move(watched);
  watched_.clear();
  std::set<std::string> ids;
  auto subjects = SubjectsOf(functions);
  const auto lost_before = lost_;
  AddLost(functions, now, &subjects);
  watched_.reserve(subjects.size());
  for (HealthSubject& subject : subjects) {
    ids.insert(subject.id);
    Watched watched = std::move(before[subject.id]);
    watched.subject = std::move(subject);
    watched_.push_back(std::move(watched));
  }
  std::erase_if(readers_, [&](const auto& reader) { return !ids.contains(reader.first); });
  // In the thread that reads, which may be in the middle of it.
  for (const auto& [pf, reader] : readers_) {
    (void)probes_.Ask(pf, [reader = reader, ids] {
      reader->probe.KeepOnly(ids);
      return true;
    });
  }
  std::erase_if(reported_,
                [&](const auto& one) { return !one.first.first.empty() && !ids.contains(one.first.first); });
  for (const auto& [id, since] : lost_before) {
    if (!ids.contains(id) || lost_.contains(id)) continue;
    monitor_.Renew(id);
    recorder_.Renew(id);
  }
  recorder_.KeepOnly(ids);
  return monitor_.KeepOnly(ids);
}

// Whether health still reports that `lost`, which the inventory no longer has, is gone. `pf`: a VF's PF;
// nullptr when the inventory does not have that either.
bool HealthWatch::IsReported(const DeviceHealth& lost, const inventory::NicFunction* pf) const {
  // Subfunctions come and go by themselves.
  if (!PciAddress::Parse(lost.id) || Exists(root_.Path("/sys/bus/pci/devices/") + lost.id)) return false;
  const bool gone = rules_->Of(HealthRule::kGone).enabled;
  if (!lost.is_vf || pf == nullptr) return gone;
  // With fewer VFs than numvfs some are gone. Otherwise the number was set, and the loss is not reported.
  if (pf->vf_count == 0) return gone || rules_->Of(HealthRule::kVfCount).enabled;
  return gone && pf->vf_count < pf->numvfs;
}

void HealthWatch::AddLost(const std::vector<inventory::NicFunction>& functions, HealthTime now,
                          std::vector<HealthSubject>* subjects) {
  std::map<std::string, const inventory::NicFunction*> here;
  for (const inventory::NicFunction& function : functions) here[function.id] = &function;
  std::map<std::string, HealthSubject*> pfs;
  for (HealthSubject& subject : *subjects) pfs[subject.id] = &subject;
  std::map<std::string, std::chrono::system_clock::time_point> lost;
  std::vector<HealthSubject> lost_pfs;
  std::vector<HealthSubject> lost_vfs;
  forget_at_ = std::chrono::system_clock::time_point::max();
  for (const DeviceHealth& device : monitor_.All()) {
    if (pfs.contains(device.id)) continue;
    const auto pf = here.find(device.pf);
    const inventory::NicFunction* its_pf = pf == here.end() ? nullptr : pf->second;
    const auto known = lost_.find(device.id);
    const auto since = known == lost_.end() ? LostSince(device, now.wall) : known->second;
    if (now.wall >= since + kRemembered || !IsReported(device, its_pf)) continue;
    lost[device.id] = since;
    forget_at_ = std::min(forget_at_, since + kRemembered);
    HealthSubject subject;
    subject.id = device.id;
    subject.is_vf = device.is_vf;
    subject.pf_id = device.pf;
    subject.pf_name = device.pf_name;
    const bool all_gone = its_pf != nullptr && its_pf->vf_count == 0;
    if (all_gone) ++pfs[device.pf]->lost_vfs;
    subject.lost_with_pf =
        device.is_vf && (its_pf == nullptr || (all_gone && rules_->Of(HealthRule::kVfCount).enabled));
    (device.is_vf ? lost_vfs : lost_pfs).push_back(std::move(subject));
  }
  lost_ = std::move(lost);
  subjects->insert(subjects->begin(), lost_pfs.begin(), lost_pfs.end());
  subjects->insert(subjects->end(), lost_vfs.begin(), lost_vfs.end());
}

bool HealthWatch::IsVfDue(const Watched& watched, Steady now) const {
  return !watched.read || !watched.settled || now - *watched.read >= rules_->vf_interval;
}

HealthWatch::Reading HealthWatch::Read(const HealthSubject& subject, bool counters) {
  auto& reader = readers_[subject.pf_id];
  if (!reader) reader = std::make_shared<PfReader>(root_, open_source_ ? open_source_() : nullptr);
  auto answer = probes_.Ask(subject.pf_id, [reader, subject, rules = rules_, counters] {
    Reading reading;
    reading.seen = reader->probe.Read(subject, *rules, counters, &reading.problems, &reading.of_counters);
    return reading;
  });
  if (answer) return *std::move(answer);
  Reading failed;
  if (answer.error().code == ErrorCode::kTimeout) {
    failed.seen->answers = false;
  } else {
    failed.seen = Fail(std::move(answer.error()));
  }
  return failed;
}

void HealthWatch::ObserveOne(const HealthSubject& subject, HealthTime now, HealthTick* tick) {
  if (unready_.IsBrieflyReset(subject.id)) return recorder_.Miss(subject);
  const bool counters = counters_now_ && !subject.is_vf;
  auto [seen, problems, of_counters] = Read(subject, counters);
  // The PF tells, for its VFs, too.
  if (seen && !seen->answers && subject.is_vf) return recorder_.Miss(subject);
  if (!seen) problems.push_back(Wrap(std::move(seen.error()), "observing " + subject.id));
  ReportProblems(subject.id, ProblemKind::kObserving, std::move(problems), tick);
  if (!seen) return recorder_.Miss(subject);
  // Between two readings of the counters, their problems are unknown.
  if (counters && seen->answers)
    ReportProblems(subject.id, ProblemKind::kCounters, std::move(of_counters), tick);
  if (const Drain* drain = drains_.Find(subject.id)) seen->drained = *drain;
  seen->not_ready = NotReady(subject);
  recorder_.Observe(subject, *seen);
  auto changes = monitor_.Observe(subject, *seen, now);
  std::move(changes.begin(), changes.end(), std::back_inserter(tick->changes));
}

HealthTick HealthWatch::Tick(const std::vector<inventory::NicFunction>& functions, const InUse& in_use,
                             HealthTime now) {
  // Rounded as in the recording, so that a replay finds the same.
  now.steady = std::chrono::floor<std::chrono::milliseconds>(now.steady);
  HealthTick tick;
  tick.problems = std::move(at_start_);
  at_start_.clear();
  FollowRecords(now, &tick);
  counters_now_ = read_all_now_ || now.steady - counters_read_ >= rules_->counter_interval;
  if (counters_now_) counters_read_ = now.steady;
  recorder_.Begin(now, *rules_, monitor_);
  const bool forgotten = Follow(functions, now);
  for (Watched& watched : watched_) {
    HealthSubject& subject = watched.subject;
    if (subject.is_vf && !read_all_now_ && !IsVfDue(watched, now.steady)) continue;
    watched.read = now.steady;
    subject.in_use = in_use && in_use(subject.id);
    ObserveOne(subject, now, &tick);
    // Only this thread writes the monitor: reading it needs no lock here.
    watched.settled = monitor_.IsSettled(subject.id);
  }
  read_all_now_ = false;
  const bool changed = forgotten || !tick.changes.empty();
  Save(changed, &tick);
  Record(changed, &tick);
  return tick;
}

void HealthWatch::FollowRecords(HealthTime now, HealthTick* tick) {
  std::string unknown;
  const auto follow = [&](ProblemKind kind, const char* what, const Result<bool>& changed) {
    ReportProblems({}, kind, changed ? std::vector<Error>{} : std::vector<Error>{changed.error()}, tick);
    read_all_now_ = read_all_now_ || changed.value_or(false);
    if (!changed && unknown.empty())
      unknown = std::string(what).append(" is not known (").append(changed.error().message).append(")");
  };
  follow(ProblemKind::kDrains, "the list of drained devices", drains_.Refresh());
  follow(ProblemKind::kUnready, "which attachments cannot be read", unready_.Refresh(now.steady));
  read_all_now_ = read_all_now_ || unknown != unknown_;
  unknown_ = std::move(unknown);
}

// A fault of a PF is one of its VFs, too: report it once for all of them.
std::string HealthWatch::NotReady(const HealthSubject& subject) const {
  std::string own = unready_.Find(subject.id);
  return own.empty() && !subject.is_vf ? unknown_ : own;
}

void HealthWatch::Record(bool changed, HealthTick* tick) {
  auto recorded = recorder_.End(changed);
  ReportProblems({}, ProblemKind::kRecording,
                 recorded ? std::vector<Error>{} : std::vector<Error>{recorded.error()}, tick);
}

void HealthWatch::Save(bool changed, HealthTick* tick) {
  AppendHistory(tick->changes, &history_);
  if (saved_ && !changed) return;
  auto written = kHealthFile.Write(root_, {monitor_.All(), history_});
  saved_ = written.has_value();
  ReportProblems({}, ProblemKind::kSaving,
                 saved_ ? std::vector<Error>{} : std::vector<Error>{written.error()}, tick);
}

void HealthWatch::ReportProblems(const std::string& id, ProblemKind kind, std::vector<Error> problems,
                                 HealthTick* tick) {
  const std::pair key(id, kind);
  if (problems.empty()) {
    reported_.erase(key);
    return;
  }
  std::set<std::string>& reported = reported_[key];
  std::set<std::string> now;
  for (Error& problem : problems) {
    const bool is_new = now.insert(problem.message).second && !reported.contains(problem.message);
    if (is_new) tick->problems.push_back(std::move(problem));
  }
  reported = std::move(now);
}

bool HealthWatch::IsHealthy(const std::string& id) const {
  const DeviceHealth* device = monitor_.Find(id);
  return device == nullptr || device->healthy;
}

std::vector<HealthReason> HealthWatch::Reasons(const std::string& id) const {
  const DeviceHealth* device = monitor_.Find(id);
  return device == nullptr ? std::vector<HealthReason>{} : device->reasons;
}

std::vector<DeviceHealth> HealthWatch::All() const {
  return monitor_.All();
}

}  // namespace railhead::health

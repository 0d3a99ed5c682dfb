#include "deviceplugin/services/health/replay.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "deviceplugin/services/health/judge.h"
#include "deviceplugin/services/health/monitor.h"
#include "deviceplugin/services/health/recorded_device.h"
#include "netns/base/text.h"

namespace railhead::health {
namespace {

using std::chrono::milliseconds;

class Player {
 public:
  Player(const RecordedHeader& first, const std::optional<HealthRules>& rules)
      : own_rules_(rules.has_value()),
        monitor_(rules.value_or(first.rules)),
        asked_(rules.value_or(first.rules)) {}

  void Begin(const RecordedSegment& segment, bool first) {
    segment_ = &segment;
    if (segment.header.continues && !first) {
      if (!own_rules_) Use(segment.header.rules);
      return;
    }
    // Under other rules the process before would have left another state.
    const auto left = own_rules_ && !first ? monitor_.All() : segment.header.devices;
    if (!own_rules_) asked_ = segment.header.rules;
    monitor_ = HealthMonitor(asked_);
    monitor_.Restore(left, TimeAt(segment.at));
    pfs_.clear();
    vfs_.clear();
  }

  std::vector<HealthChange> Play(const RecordedRound& round) {
    all_ = false;
    if (!own_rules_ && !round.rules.empty()) Use(round.rules.front());
    for (const std::string& id : round.renewed) monitor_.Renew(id);
    Forget(round.forgotten);
    std::set<std::string> observed;
    for (const RecordedDevice& device : round.devices) {
      const HealthSubject& subject = device.subject;
      (subject.is_vf ? pfs_ : vfs_).erase(subject.id);
      (subject.is_vf ? vfs_ : pfs_)[subject.id] = device;
      observed.insert(subject.id);
    }
    const HealthTime now = TimeAt(round.at);
    std::vector<HealthChange> changes;
    for (auto& [id, pf] : pfs_) {
      Observe(pf, now, &changes);
      // Read in this round, not in the next one.
      pf.seen.counters.clear();
    }
    for (const auto& [id, vf] : vfs_) {
      if (all_ || !monitor_.IsSettled(id) || observed.contains(id)) Observe(vf, now, &changes);
    }
    return changes;
  }

  [[nodiscard]] std::vector<DeviceHealth> All() const { return monitor_.All(); }

 private:
  [[nodiscard]] HealthTime TimeAt(milliseconds at) const {
    return {std::chrono::steady_clock::time_point(at), segment_->header.time + (at - segment_->at)};
  }

  void Use(const HealthRules& rules) {
    all_ = all_ || rules != asked_;
    asked_ = rules;
    monitor_.SetRules(rules);
  }

  void Forget(const std::vector<std::string>& forgotten) {
    if (forgotten.empty()) return;
    std::set<std::string> ids;
    for (const DeviceHealth& device : monitor_.All()) ids.insert(device.id);
    for (const std::string& id : forgotten) {
      ids.erase(id);
      pfs_.erase(id);
      vfs_.erase(id);
    }
    (void)monitor_.KeepOnly(ids);
  }

  void Observe(const RecordedDevice& device, HealthTime now, std::vector<HealthChange>* changes) {
    if (device.unread) return;
    auto found = monitor_.Observe(device.subject, device.seen, now);
    std::move(found.begin(), found.end(), std::back_inserter(*changes));
  }

  bool own_rules_;
  HealthMonitor monitor_;
  HealthRules asked_;
  const RecordedSegment* segment_ = nullptr;
  std::map<std::string, RecordedDevice> pfs_;
  std::map<std::string, RecordedDevice> vfs_;
  bool all_ = false;
};

// All rules that were in use at some time.
std::vector<const HealthRules*> RecordedRules(const Recording& recording) {
  std::vector<const HealthRules*> all;
  for (const RecordedSegment& segment : recording.segments) {
    all.push_back(&segment.header.rules);
    for (const RecordedRound& round : segment.rounds) {
      for (const HealthRules& rules : round.rules) all.push_back(&rules);
    }
  }
  return all;
}

bool Asks(const HealthRules& rules, HealthRule rule, const std::string& counter) {
  const RuleSettings& settings = rules.Of(rule);
  if (!settings.enabled) return false;
  return counter.empty() || Contains(settings.counters, counter, &CounterLimit::counter);
}

}  // namespace

ReplayResult Replay(const Recording& recording, const std::optional<HealthRules>& rules) {
  ReplayResult replayed;
  const RecordedHeader& first = recording.segments.front().header;
  Player player(first, rules);
  replayed.begin = first.devices;
  for (const RecordedSegment& segment : recording.segments) {
    player.Begin(segment, &segment == &recording.segments.front());
    for (const RecordedRound& round : segment.rounds) {
      auto changes = player.Play(round);
      ++replayed.round_count;
      replayed.lasted = round.at;
      if (!changes.empty()) replayed.rounds.push_back({round.at, std::move(changes)});
    }
  }
  replayed.end = player.All();
  return replayed;
}

std::vector<std::string> Missing(const Recording& recording, const HealthRules& rules) {
  const auto recorded = RecordedRules(recording);
  const auto was_asked = [&](HealthRule rule, const std::string& counter) {
    return std::ranges::all_of(recorded, [&](const HealthRules* each) { return Asks(*each, rule, counter); });
  };
  std::vector<std::string> missing;
  for (const HealthRule rule : AllHealthRules()) {
    if (IsAlwaysOn(rule)) continue;
    const std::string name(NameOf(rule));
    if (Asks(rules, rule, {}) && !was_asked(rule, {}))
      missing.push_back("rule " + name + " was off, at least for a time: its input was not read then");
    for (const CounterLimit& limit : rules.Of(rule).counters) {
      if (Asks(rules, rule, limit.counter) && was_asked(rule, {}) && !was_asked(rule, limit.counter))
        missing.push_back(name + ": counter " + limit.counter + " was not read, at least for a time");
    }
  }
  const HealthRules& first = *recorded.front();
  if (rules.interval != first.interval || rules.vf_interval != first.vf_interval ||
      rules.counter_interval != first.counter_interval)
    missing.emplace_back(
        "observations have their recorded times, not intervalSeconds, vfSeconds and counterSeconds");
  return missing;
}

}  // namespace railhead::health

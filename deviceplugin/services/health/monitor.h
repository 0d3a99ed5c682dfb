// From observations to Healthy and Unhealthy: a state machine without clock and I/O.
//
// A device begins with its last known state (Restore), or Healthy. A rule that is bad for its down_after
// fires; an active rule that is good for its up_after clears. A device is Unhealthy while any rule is active
// for it or its PF. So a restart changes no state, and a flapping device stays Unhealthy until its state is
// stable. A PF's kVfCount makes only its VFs Unhealthy.
// Threads: one at a time.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/health/judge.h"
#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/health/rate_window.h"
#include "deviceplugin/services/health/rules.h"

namespace railhead::health {

class HealthMonitor {
 public:
  explicit HealthMonitor(HealthRules rules) : rules_(std::move(rules)) {}

  // Rules that are switched off clear with the next observation.
  void SetRules(HealthRules rules);
  // The state of an earlier process; once, before the first observation.
  void Restore(const std::vector<DeviceHealth>& saved, HealthTime now);

  // `now` never decreases. A PF's observation changes its VFs, too: observe it first.
  std::vector<HealthChange> Observe(const HealthSubject& subject, const Observation& seen, HealthTime now);
  // Call it for a new VF that has an old VF's name. It drops the old VF's own faults.
  void Renew(const std::string& id);
  // Drops the devices that the inventory no longer has, without a change. True when it dropped any.
  bool KeepOnly(const std::set<std::string>& ids);

  // nullptr: unknown. Valid until the next call that is not const.
  [[nodiscard]] const DeviceHealth* Find(const std::string& id) const;
  [[nodiscard]] std::vector<DeviceHealth> All() const;  // in the order of their ids
  // No rule of its own is active or about to fire, so it need not be watched closely.
  [[nodiscard]] bool IsSettled(const std::string& id) const;

 private:
  using Steady = std::chrono::steady_clock::time_point;

  // A rule that is bad now, or was shortly before. Most devices have none.
  struct Tracker {
    HealthReason reason;
    bool holds = false;
    Steady bad_since;
    std::optional<Steady> good_since;
  };
  struct Device {
    DeviceHealth shown;
    std::vector<Tracker> trackers;
    std::map<std::pair<HealthRule, std::string>, RateWindow> windows;
  };

  Device& DeviceOf(const HealthSubject& subject, HealthTime now);
  Verdict JudgeCounters(Device* device, HealthRule rule, const HealthSubject& subject,
                        const Observation& seen, HealthTime now) const;
  // True when the rule fired or cleared.
  bool Update(Device* device, HealthRule rule, const Verdict& verdict, HealthTime now) const;
  [[nodiscard]] std::vector<HealthReason> ReasonsFor(const Device& device) const;
  void Show(Device* device, HealthTime now, std::vector<HealthChange>* changes) const;
  void RestoreOfPf(const DeviceHealth& vf, HealthTime now);
  void RestoreCounter(Device* device, const HealthReason& reason, HealthTime now) const;

  HealthRules rules_;
  std::map<std::string, Device> devices_;
};

}  // namespace railhead::health

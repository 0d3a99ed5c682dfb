// The health of all functions of a node, driven by one timer.
//
//   HealthWatch watch(root, rules, in_host ? MakeKernelDriverSource() : nullptr);
//   // every rules().interval, and at once when the kernel told of a change:
//   const HealthTick tick = watch.Tick(inventory->functions, in_use, HealthTime::Now());
//
// A PCI function that the inventory had and that is gone from the bus stays for a day, as gone,
// unless its PF's VFs were made anew: an event may have told the inventory before any rule
// could. A tick reads the PFs, the VFs that are not known to be well, and what else is due. State
// and history are kept in /run/railhead/health.json and taken up again by the next process; what
// was observed is recorded beside it (recording.h).
// Threads: Tick, SetRules and Hurry from one thread; IsHealthy, Reasons and All from any,
// also meanwhile: they wait for no I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/monitor.h"
#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/health/probe.h"
#include "deviceplugin/services/health/recording.h"
#include "deviceplugin/services/health/rules.h"
#include "deviceplugin/services/health/state_file.h"

namespace railhead::health {

struct HealthTick {
  std::vector<HealthChange> changes;
  // What could not be read or saved, told once until it has been read or saved again.
  std::vector<Error> problems;
};

class HealthWatch {
 public:
  // Whether a device was given to a pod: by its id.
  using InUse = std::function<bool(const std::string&)>;
  // What probes say of the rail of a PF, by the PF's id; nullopt: it is not probed.
  using RailSeen = std::function<std::optional<ObservedRail>(const std::string&)>;

  // Reads the state of an earlier process. `source` may be nullptr.
  HealthWatch(Root root, HealthRules rules, std::unique_ptr<DriverSource> source,
              HealthTime now = HealthTime::Now());

  // `functions`: all that may be given out, VFs, PFs and subfunctions in any order.
  HealthTick Tick(const std::vector<inventory::NicFunction>& functions, const InUse& in_use, HealthTime now);
  // Takes effect with the next tick.
  void SetRules(HealthRules rules);
  // Before the first tick; without it no rail is probed.
  void SetRails(RailSeen rails) { rails_ = std::move(rails); }
  // The next tick reads everything.
  void Hurry() { hurry_ = true; }
  [[nodiscard]] const HealthRules& rules() const { return rules_; }

  // True for devices that were never heard of.
  [[nodiscard]] bool IsHealthy(const std::string& id) const;
  [[nodiscard]] std::vector<HealthReason> Reasons(const std::string& id) const;
  [[nodiscard]] std::vector<DeviceHealth> All() const;

 private:
  using Steady = std::chrono::steady_clock::time_point;

  struct Watched {
    HealthSubject subject;
    std::optional<Steady> read;
    bool settled = false;  // when it was read
  };

  // True when devices were forgotten.
  bool Follow(const std::vector<inventory::NicFunction>& functions, HealthTime now);
  void AddLost(const std::vector<inventory::NicFunction>& functions, HealthTime now,
               std::vector<HealthSubject>* subjects);
  [[nodiscard]] bool IsTold(const DeviceHealth& lost, const inventory::NicFunction* pf) const;
  void ObserveOne(const HealthSubject& subject, HealthTime now, HealthTick* tick);
  [[nodiscard]] bool IsVfDue(const Watched& watched, Steady now) const;
  // What operators and Railhead itself have put on record.
  void FollowRecords(HealthTime now, HealthTick* tick);
  // Why `subject` is not ready; "": it is.
  [[nodiscard]] std::string NotReady(const HealthSubject& subject) const;
  void Save(bool changed, HealthTick* tick);
  void Record(bool changed, HealthTick* tick);
  // `kind` of problems of the device `id`, all that there are now: those that are new join `tick`.
  enum class ProblemKind : std::uint8_t { kObserving, kCounters, kSaving, kDrains, kUnready, kRecording };
  void Tell(const std::string& id, ProblemKind kind, std::vector<Error> problems, HealthTick* tick);

  const Root root_;
  HealthRules rules_;
  const std::unique_ptr<DriverSource> source_;
  RailSeen rails_;
  HealthProbe probe_;
  DrainList drains_;
  UnreadyDevices unready_;
  // Why no device may be given out: a record that would name those that may not cannot be read.
  std::string unknown_;
  HealthRecorder recorder_;
  bool hurry_ = true;
  bool counters_now_ = false;
  Steady counters_read_;
  std::optional<std::vector<inventory::NicFunction>> functions_;  // of the latest tick
  std::vector<Watched> watched_;                                  // made of these; PFs first
  // Since when devices are gone, by id; when the first of them is forgotten.
  std::map<std::string, std::chrono::system_clock::time_point> lost_;
  std::chrono::system_clock::time_point forget_at_ = std::chrono::system_clock::time_point::max();
  std::vector<HealthRecord> history_;
  bool saved_ = false;  // the file holds the present state
  std::vector<Error> at_start_;
  std::map<std::pair<std::string, ProblemKind>, std::set<std::string>> told_;

  mutable std::mutex mutex_;  // of the monitor
  HealthMonitor monitor_;
};

// Which NICs health watches: the PFs of the rails and of what may be given out, with their VFs, and no more
// of the host's. Threads: pure function.

// `known`: what health knows by now. What of that has gone, or has lost its driver, is in no pool any more,
// and watched because somebody has to say so.
std::vector<inventory::NicFunction> WatchedFunctions(const resources::Plan& plan,
                                                     const std::vector<DeviceHealth>& known);

}  // namespace railhead::health

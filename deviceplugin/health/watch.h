// The health of all functions of a node, driven by one timer.
//
//   HealthWatch watch(root, rules, in_host ? MakeKernelDriverSource() : nullptr);
//   // every rules().interval, and at once when the kernel told of a change:
//   const HealthTick tick = watch.Tick(inventory->functions, in_use, HealthTime::Now());
//
// A tick reads the PFs, the VFs that are not known to be well, and what else is due. State
// and history are kept in /run/railhead/health.json and taken up again by the next process.
// Threads: Tick, SetRules and Hurry from one thread; IsHealthy, Reasons and All from any,
// also meanwhile: they wait for no I/O.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/health/driver_source.h"
#include "deviceplugin/health/monitor.h"
#include "deviceplugin/health/observation.h"
#include "deviceplugin/health/probe.h"
#include "deviceplugin/health/rules.h"
#include "deviceplugin/health/state_file.h"
#include "deviceplugin/pools/inventory.h"

namespace railhead {

struct HealthTick {
  std::vector<HealthChange> changes;
  // What could not be read or saved, told once until it has been well for a tick.
  std::vector<Error> problems;
};

class HealthWatch {
 public:
  // Whether a device was given to a pod: by its id.
  using InUse = std::function<bool(const std::string&)>;

  // Reads the state of an earlier process. `source` may be nullptr.
  HealthWatch(Root root, HealthRules rules, std::unique_ptr<DriverSource> source);

  // `functions`: all that may be given out, VFs, PFs and subfunctions in any order.
  HealthTick Tick(const std::vector<NicFunction>& functions, const InUse& in_use, HealthTime now);
  // Takes effect with the next tick.
  void SetRules(HealthRules rules);
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
  };

  // True when devices were forgotten.
  bool Follow(const std::vector<NicFunction>& functions);
  void ObserveOne(const HealthSubject& subject, HealthTime now, HealthTick* tick);
  [[nodiscard]] bool IsVfDue(const Watched& watched, Steady now) const;
  void Save(bool changed, HealthTick* tick);
  void TellOnce(std::vector<Error>* problems);

  const Root root_;
  HealthRules rules_;
  const std::unique_ptr<DriverSource> source_;
  HealthProbe probe_;
  bool hurry_ = true;
  bool counters_now_ = false;
  Steady counters_read_;
  std::optional<std::vector<NicFunction>> functions_;  // of the latest tick
  std::vector<Watched> watched_;                       // made of these; PFs first
  std::vector<HealthRecord> history_;
  bool saved_ = false;  // the file holds the present state
  std::vector<Error> at_start_;
  std::set<std::string> told_;

  mutable std::mutex mutex_;  // of the monitor
  HealthMonitor monitor_;
};

}  // namespace railhead

// The health of all functions of a node, driven by one timer.
//
//   HealthWatch watch(root, rules, in_host ? MakeKernelDriverSource : nullptr, probes);
//   // every rules().interval, and at once after a device event of the kernel:
//   const HealthTick tick = watch.Tick(inventory->functions, in_use, HealthTime::Now());
//
// If a PCI function of the inventory disappears from the bus, health reports it as gone for a day. The
// inventory may drop it before any rule could fire. VFs that their PF created again are not reported. A tick
// reads the PFs, the VFs that are not known to be healthy, and others that are due. A PF that does not answer
// is Unhealthy with its VFs, and costs one tick its deadline (probe_workers.h). State and history are
// kept in /run/railhead/health.json for the next process; the observations are recorded beside it
// (health_recorder.h).
// Ownership: borrows `probes`. Threads: one; others get what All() says as a Published value.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/driver_source.h"
#include "deviceplugin/services/health/health_recorder.h"
#include "deviceplugin/services/health/monitor.h"
#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/health/rules.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/health/unready_devices.h"
#include "deviceplugin/support/service/probe_workers.h"

namespace railhead::health {

struct HealthTick {
  std::vector<HealthChange> changes;
  // Failures to read or save. Each is reported once until it is over.
  std::vector<Error> problems;
};

class HealthWatch {
 public:
  // Whether a pod has the device with this id.
  using InUse = std::function<bool(const std::string&)>;

  // Reads the state of an earlier process. `open_source` opens the source of one PF; it may be nullptr.
  HealthWatch(Root root, HealthRules rules, OpenDriverSource open_source, ProbeWorkers& probes,
              HealthTime now = HealthTime::Now());

  // `functions`: every VF, PF and subfunction that may be advertised, in any order.
  HealthTick Tick(const std::vector<inventory::NicFunction>& functions, const InUse& in_use, HealthTime now);
  // Takes effect with the next tick.
  void SetRules(HealthRules rules);
  // The next tick reads everything.
  void ReadAllNow() { read_all_now_ = true; }
  [[nodiscard]] const HealthRules& rules() const { return *rules_; }

  // True for unknown devices.
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

  // Reads a PF and its VFs. The thread of their reads holds it, too.
  struct PfReader;
  // What was read of one function.
  struct Reading {
    Result<Observation> seen;
    std::vector<Error> problems;
    std::vector<Error> of_counters;
  };

  // True when devices were forgotten.
  bool Follow(const std::vector<inventory::NicFunction>& functions, HealthTime now);
  void AddLost(const std::vector<inventory::NicFunction>& functions, HealthTime now,
               std::vector<HealthSubject>* subjects);
  [[nodiscard]] bool IsReported(const DeviceHealth& lost, const inventory::NicFunction* pf) const;
  Reading Read(const HealthSubject& subject, bool counters);
  void ObserveOne(const HealthSubject& subject, HealthTime now, HealthTick* tick);
  [[nodiscard]] bool IsVfDue(const Watched& watched, Steady now) const;
  // Reads the records of operators and of Railhead itself.
  void FollowRecords(HealthTime now, HealthTick* tick);
  // Why `subject` is not ready; "": it is.
  [[nodiscard]] std::string NotReady(const HealthSubject& subject) const;
  void Save(bool changed, HealthTick* tick);
  void Record(bool changed, HealthTick* tick);
  // All present problems of `kind` of the device `id`. New ones are added to `tick`.
  enum class ProblemKind : std::uint8_t { kObserving, kCounters, kSaving, kDrains, kUnready, kRecording };
  void ReportProblems(const std::string& id, ProblemKind kind, std::vector<Error> problems, HealthTick* tick);

  const Root root_;
  std::shared_ptr<const HealthRules> rules_;
  const OpenDriverSource open_source_;
  ProbeWorkers& probes_;
  std::map<std::string, std::shared_ptr<PfReader>> readers_;  // by PF
  DrainList drains_;
  UnreadyDevices unready_;
  // Why no device may be advertised: a record of withheld devices cannot be read.
  std::string unknown_;
  HealthRecorder recorder_;
  bool read_all_now_ = true;
  bool counters_now_ = false;
  Steady counters_read_;
  std::optional<std::vector<inventory::NicFunction>> functions_;  // of the latest tick
  std::vector<Watched> watched_;                                  // made of `functions_`; PFs first
  // Since when devices are gone, by id; when the first of them is dropped.
  std::map<std::string, std::chrono::system_clock::time_point> lost_;
  std::chrono::system_clock::time_point forget_at_ = std::chrono::system_clock::time_point::max();
  std::vector<HealthRecord> history_;
  bool saved_ = false;  // the file holds the present state
  std::vector<Error> at_start_;
  std::map<std::pair<std::string, ProblemKind>, std::set<std::string>> reported_;

  HealthMonitor monitor_;
};

}  // namespace railhead::health

// NodeWatcher: keeps the advertisement to kubelet in step with the node and its configuration.
//
// A discovery runs after VFs were made or removed, drivers bound, PFs renamed, or a configuration file
// replaced, once the changes have settled. It also runs on request, and every `resync` in case that an event
// was lost, or every ten seconds while the kernel sends no events.
// The transient state of a device during a reset between two pods changes nothing. An invalid configuration
// changes nothing: the last valid one stays in use, and the report says why. Health is checked in between, by
// the clock of health/watch.h.
//
// Ownership: borrows the kernel and the probes. Threads: a thread of its own, which calls all of Calls;
// Discover() and Stop() from any.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "deviceplugin/daemon/activity.h"
#include "deviceplugin/daemon/railheadd.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/watch.h"
#include "deviceplugin/services/kubelet/advertisement.h"
#include "deviceplugin/services/late_binding/binder.h"
#include "deviceplugin/support/service/probe_workers.h"
#include "deviceplugin/support/worker/worker.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::daemon {

// The differences that one discovery has found.
struct PlanChange {
  struct Devices {
    std::vector<std::string> added;  // ids, sorted
    std::vector<std::string> removed;
  };
  std::map<std::string, Devices> resources;  // by name; those that have changed
  std::optional<Error> error;                // the plan could not be made: nothing has changed
  // Problems that do not stop the plan; each is reported once, and its end as `note`.
  struct Warning {
    std::string what;
    Error why;
  };
  std::vector<Warning> warnings;
  std::string note;
};

PlanChange Difference(const resources::Plan& before, const resources::Plan& now);

// Unhealthy are the devices that `health` (nullptr: nothing is known) reports, and those that a pod has under
// another resource name (`withheld`). Pools with late binding have slots. Reads from `root` which devices
// pods have lost.
kubelet::Advertisement AdvertisementOf(const Root& root, const resources::Plan& plan,
                                       const health::HealthWatch* health, const resources::BoundSlots& bound,
                                       const std::set<std::string>& withheld);

class NodeWatcher {
 public:
  struct Options {
    Root root;
    resources::ConfigSource source;
    std::chrono::seconds resync{60};
    Activity* activity = nullptr;  // borrowed: counters and the thread's heartbeat
  };
  struct Calls {
    std::function<void(kubelet::Advertisement)> advertise;
    // For warnings and notes, and for discoveries that found a difference. Also for an error that differs
    // from the one before, and for the first discovery without an error after that.
    std::function<void(const PlanChange&)> plan_changed;
    // For an allocation that could not be written again, when the error differs from the one before.
    std::function<void(const Error&)> restore_failed;
    // For a changed set of withheld devices: a pod has them under another resource's name.
    std::function<void(const std::set<std::string>&)> withheld_changed;
    // After every discovery, for the binder of slots and for the guess of a pod's accelerators.
    std::function<void(late_binding::BindingView)> view_changed;
    // After every discovery that made a plan; may be empty.
    std::function<void(const resources::Plan&)> plan_made;
    // After every health check that found a change.
    std::function<void(const health::HealthTick&)> health_changed;
  };

  // kIo when it has no descriptors to wait on. `health` may be nullptr: all is healthy.
  static Result<std::unique_ptr<NodeWatcher>> Start(Options options, Kernel& kernel, ProbeWorkers& probes,
                                                    resources::Plan first,
                                                    std::unique_ptr<health::HealthWatch> health, Calls calls);
  NodeWatcher(const NodeWatcher&) = delete;
  NodeWatcher& operator=(const NodeWatcher&) = delete;
  ~NodeWatcher();

  // Requests a discovery soon; does not wait for it.
  void Discover() { events_.Wake(); }
  void Stop();
  // Whether the thread has ended.
  bool AwaitEnd(std::chrono::milliseconds limit) { return end_.wait_for(limit) == std::future_status::ready; }
  // The health of all devices that may be advertised, as of the last check; from any thread.
  [[nodiscard]] std::vector<health::DeviceHealth> Health() const {
    return health_ ? health_->All() : std::vector<health::DeviceHealth>{};
  }

 private:
  using Clock = NodeEvents::Clock;

  NodeWatcher(Options options, Kernel& kernel, ProbeWorkers& probes, resources::Plan first,
              std::unique_ptr<health::HealthWatch> health, Calls calls, NodeEvents events);
  void Loop();
  void Settle();
  void ReportWarning(const std::string& what, const Error& why);
  void ConnectUevents();
  void DiscoverNode();
  // Whether the plan shows a device in the middle of a reset.
  [[nodiscard]] bool IsTransient(const resources::Plan& now, const std::set<std::string>& in_reset) const;
  void SetPlan(Result<NodePlan> now);
  void KeepProbes();
  void ReportWarnings();
  void RecordPfs();
  void Restore();
  void CheckHealth();
  void AdvertiseIfChanged();
  [[nodiscard]] std::vector<std::string> Files() const;
  NodeEvents::Seen Wait(Clock::time_point until);

  const Options options_;
  Kernel& kernel_;
  ProbeWorkers& probes_;
  resources::Plan plan_;
  std::vector<inventory::NicFunction> functions_;  // of plan_: WatchedFunctions()
  const std::unique_ptr<health::HealthWatch> health_;
  const topology::AcceleratorIds::UuidLookup uuids_;
  const Calls calls_;
  resources::DdpMemory ddp_;
  health::OngoingResets resets_;
  std::set<std::string> warned_;
  std::optional<Error> uevents_error_;
  std::string last_error_;
  std::string last_record_error_;
  std::string last_restore_error_;
  std::set<std::string> withheld_;
  bool pods_lost_devices_ = false;  // as of the last advertisement
  bool changed_ = false;            // since the last advertisement
  bool only_lost_ = false;          // by the last discovery
  Clock::time_point next_discovery_;
  Clock::time_point next_tick_;
  NodeEvents events_;
  std::atomic<bool> stopping_{false};
  std::promise<void> ended_;
  const std::future<void> end_ = ended_.get_future();
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead::daemon

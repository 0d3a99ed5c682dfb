// NodeWatcher: reads the node, its configuration and its health, and publishes what follows.
//
// It begins with what a start has to do before: it waits for a fabric that another program shall bring, and
// makes the VFs that the fabric states. A discovery runs after VFs were made or removed, drivers bound, PFs
// renamed, or a configuration file replaced, once the changes have settled. It also runs on request, and
// every `resync` in case that an event was lost, or every ten seconds while the kernel sends no events. The
// transient state of a device during a reset between two pods changes nothing. An invalid configuration
// changes nothing: the last valid one stays in use, and the log says why. Health is checked in between, by
// the clock of health/watch.h.
//
// Ownership: borrows all but Options. Threads: as Service; Discover() and what is published from any.
// Errors: of Run(): those of the first reading of the node (ReadNode), and kIo without free descriptors.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/node/health/device_health.h"
#include "deviceplugin/node/resources/ddp_profiles.h"
#include "deviceplugin/node/snapshot/advertisement.h"
#include "deviceplugin/node/snapshot/binding_view.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/discovery/node_change.h"
#include "deviceplugin/services/discovery/node_events.h"
#include "deviceplugin/services/discovery/read_node.h"
#include "deviceplugin/services/health/ongoing_resets.h"
#include "deviceplugin/services/health/watch.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/counter.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/metrics/time_of_day.h"
#include "deviceplugin/support/service/once_per_change.h"
#include "deviceplugin/support/service/probe_workers.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/service.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::discovery {

class NodeWatcher : public Service {
 public:
  struct Options {
    Root root;
    ConfigSource source;
    std::chrono::seconds resync{60};
    // Why the fabric that another program brings is not in force; nullptr: none brings one.
    const Published<std::string>* fabric_refused = nullptr;
  };

  NodeWatcher(Options options, Kernel& kernel, ProbeWorkers& probes, Log* log);
  ~NodeWatcher() override;

  [[nodiscard]] std::string_view name() const override { return "node_watcher"; }
  void Register(MetricRegistry& metrics) override;
  Result<void> Run(Worker& worker) override;

  // Requests a discovery soon; does not wait for it.
  void Discover();

  // Without inventory before the first reading.
  [[nodiscard]] const Published<NodeSnapshot>& node() const { return node_; }
  // Of all devices that may be advertised, as of the last check.
  [[nodiscard]] const Published<health::Health>& health() const { return health_now_; }
  [[nodiscard]] const Published<std::optional<Advertisement>>& advertisement() const {
    return advertisement_;
  }
  [[nodiscard]] const Published<BindingView>& binding_view() const { return binding_view_; }
  // What a long start is at, for people; "": it is over, or was short so far.
  [[nodiscard]] const Published<std::string>& start() const { return start_; }
  // Whether the start is over, or takes long: there is something to say about this process.
  [[nodiscard]] const Published<bool>& answerable() const { return answerable_; }

  [[nodiscard]] bool uevents_connected() const { return uevents_connected_; }
  [[nodiscard]] bool config_ok() const { return config_ok_; }
  [[nodiscard]] std::uint64_t discoveries_started() const { return discoveries_started_.value(); }
  [[nodiscard]] std::uint64_t discoveries_done() const { return discoveries_done_.value(); }

 private:
  using Clock = NodeEvents::Clock;

  // The steps of the start.
  void AwaitFabric();
  Result<void> Provision();
  Result<void> ReadFirst();
  void ReportStart(const std::string& what);

  void Loop();
  void Settle();
  void ReportWarning(const std::string& what, const Error& why);
  void ConnectUevents();
  void DiscoverNode();
  // Whether the reading shows a device in the middle of a reset.
  [[nodiscard]] bool IsTransient(const NodeSnapshot& now, const std::set<std::string>& in_reset) const;
  void Apply(Result<NodeReading> now);
  void KeepProbes();
  void ReportWarnings();
  void RecordPfs();
  void Restore();
  void CheckHealth();
  void AdvertiseIfChanged();
  void Advertise();
  void PublishHealth();
  [[nodiscard]] const NodeSnapshot& snapshot() const { return *node_.Get(); }
  [[nodiscard]] std::vector<std::string> Files() const;
  NodeEvents::Seen Wait(Clock::time_point until);

  const Options options_;
  Kernel& kernel_;
  ProbeWorkers& probes_;
  Log* const log_;
  const topology::AcceleratorIds::UuidLookup uuids_;
  Worker* worker_ = nullptr;            // while it runs
  Published<std::uint64_t> requested_;  // the number of requests
  std::optional<NodeEvents> events_;
  std::vector<inventory::NicFunction> functions_;  // of the snapshot: WatchedFunctions()
  std::unique_ptr<health::HealthWatch> health_;
  resources::DdpMemory ddp_;
  health::OngoingResets resets_;
  std::set<std::string> warned_;
  std::optional<Error> uevents_error_;
  OncePerChange discovery_error_;
  OncePerChange record_error_;
  OncePerChange restore_error_;
  std::set<std::string> withheld_;
  bool pods_lost_devices_ = false;  // as of the last advertisement
  bool changed_ = false;            // since the last advertisement
  bool only_lost_ = false;          // by the last discovery
  Clock::time_point next_discovery_;
  Clock::time_point next_tick_;

  Counter hardware_events_;
  Counter file_events_;
  Counter requests_;  // SIGHUP
  Counter discoveries_started_;
  Counter discoveries_done_;
  Counter discovery_failures_;
  std::atomic<bool> uevents_connected_{true};  // the kernel sends device events
  std::atomic<bool> config_ok_{true};
  TimeOfDay last_good_;
  std::array<Counter, health::kHealthRuleCount> fired_;  // by HealthRule
  std::array<Counter, health::kHealthRuleCount> cleared_;

  Published<NodeSnapshot> node_;
  Published<health::Health> health_now_;
  Published<std::optional<Advertisement>> advertisement_;
  Published<BindingView> binding_view_;
  Published<std::string> start_;
  Published<bool> answerable_;
};

}  // namespace railhead::discovery

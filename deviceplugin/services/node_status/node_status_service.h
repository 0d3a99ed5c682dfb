// NodeStatusService: reports the node's rails to the cluster.
//
// It writes when what it reads has changed, when a heartbeat is due, and again after a failure. Changes of
// the settings in the fabric take effect with the next reading of the node. Settings that cannot be used
// change nothing: it goes on by the last ones.
//
// Ownership: borrows the log and what Sources refers to. Threads: as Service.
// Errors: of Run(): kInvalid for the first settings. Later failures are logged when they differ from the one
// before, and retried.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cni/fabric/fabric.h"
#include "cni/state/journal_cache.h"
#include "deviceplugin/node/health/device_health.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/node/snapshot/rail_faults.h"
#include "deviceplugin/services/node_status/node_status_settings.h"
#include "deviceplugin/services/node_status/node_status_writer.h"
#include "deviceplugin/services/node_status/rail_states.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/once_per_change.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/service.h"
#include "netns/base/mutex.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::node_status {

class NodeStatusService : public Service {
 public:
  struct Sources {
    const Published<NodeSnapshot>& node;
    const Published<health::Health>& health;
    const Published<RailFaults>& faults;           // of probes
    const Published<std::string>& fabric_refused;  // as NodeStatus has it
  };

  // A fabric without `nodeStatus` may get it later.
  NodeStatusService(Root root, const Sources& sources, KubeService kubernetes, Log* log);

  [[nodiscard]] std::string_view name() const override { return "node_status"; }
  void Register(MetricRegistry& metrics) override;
  Result<void> Run(Worker& worker) override;

 private:
  struct Pause {
    std::chrono::milliseconds time;
    bool may_wake = true;  // a change ends it
  };

  Pause Step();
  [[nodiscard]] std::optional<NodeStatus> Collect(const NodeSnapshot& node);
  // Takes the fabric's settings. After an error the earlier ones stay.
  Result<void> ApplySettings(const Fabric& fabric, const std::string& what);
  void SetWriter(std::unique_ptr<NodeStatusWriter> writer);
  [[nodiscard]] std::map<std::string, PodDevice> InPods();
  void LogOutcome(const NodeStatusOutcome& outcome);
  [[nodiscard]] NodeStatusCounts Counts() const;
  // The service's thread alone changes it.
  [[nodiscard]] NodeStatusWriter* writer() const;

  const Root root_;
  const Sources sources_;
  const KubeService kubernetes_;
  Log* const log_;
  NodeStatusSettings settings_;
  JournalCache journal_;
  OncePerChange problem_;    // of writing
  OncePerChange complaint_;  // about the settings

  mutable Mutex mutex_;                                             // of what metrics read
  std::unique_ptr<NodeStatusWriter> writer_ RH_GUARDED_BY(mutex_);  // nullptr: nothing is to be reported
  NodeStatusCounts earlier_ RH_GUARDED_BY(mutex_);                  // of the writers before
  std::optional<int> healthy_rails_ RH_GUARDED_BY(mutex_);  // of the latest update; nullopt: none so far
};

}  // namespace railhead::node_status

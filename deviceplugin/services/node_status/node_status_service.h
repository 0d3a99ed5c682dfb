// NodeStatusService: reports the node's rails to the cluster: configuration, thread, log and metrics.
//
// Ownership: borrows the log, and what Sources refers to. Threads: thread-safe; Start() once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/state/journal_cache.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/node_status/node_status_writer.h"
#include "deviceplugin/services/node_status/rail_states.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::node_status {

// The thread of railheadd that writes the node status.
//
// It runs when it is woken, when a heartbeat is due, and again after a failure. No other thread waits for it.
// `collect` also returns the writer. After a change of settings it returns another one.
// Threads: its own one calls `collect` and `report`; all others from any.
// Errors: none; failures are reported and retried.

struct NodeStatusSummary {
  NodeStatusCounts counts;
  std::optional<int> healthy_rails;  // of the latest update; nullopt: none so far
};

struct NodeStatusUpdate {
  std::shared_ptr<NodeStatusWriter> writer;  // nullptr: nothing is reported until Wake()
  NodeStatus status;
};

class NodeStatusLoop {
 public:
  // nullopt: the status is not known yet, or another railheadd reports it.
  using Collect = std::function<std::optional<NodeStatusUpdate>()>;
  using Report = std::function<void(const NodeStatusOutcome&)>;

  NodeStatusLoop(Collect collect, Report report);
  // Ends the thread, after the pending request to the API.
  ~NodeStatusLoop();
  NodeStatusLoop(const NodeStatusLoop&) = delete;
  NodeStatusLoop& operator=(const NodeStatusLoop&) = delete;

  // Call it when the status may have changed. It does not shorten the wait after a failure.
  void Wake();
  void Stop();
  // Whether the thread has ended.
  bool AwaitEnd(std::chrono::milliseconds limit);
  [[nodiscard]] NodeStatusSummary Summary() const;

 private:
  void Loop();
  // How long to wait, and whether Wake() may end that.
  std::pair<std::chrono::milliseconds, bool> StepOnce();

  void Take(const NodeStatusUpdate& update);

  const Collect collect_;
  const Report report_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<NodeStatusWriter> writer_;  // of the latest update
  NodeStatusCounts earlier_;                  // of those before it
  std::optional<int> healthy_rails_;
  bool woken_ = false;
  bool stopped_ = false;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the others
};

class NodeStatusService {
 public:
  struct Sources {
    std::function<std::vector<health::DeviceHealth>()> health;
    std::function<bool()> is_standby;  // a newer railheadd reports instead
    // Why probes on this rail reach nothing, "" if they do; may be empty.
    std::function<std::string(const std::string& rail)> unreachable;
    std::function<std::string()> fabric_refused;  // as NodeStatus has it; may be empty
  };

  NodeStatusService(const Root& root, Log* log);

  // `plan` as for SetPlan(). A fabric without `nodeStatus` may get it later.
  Result<void> Start(const resources::Plan& plan, const KubeService& service, Sources sources);
  void SetPlan(const resources::Plan& plan);
  void HealthChanged();
  void Stop();
  // Whether the thread has ended, or was never started.
  bool AwaitEnd(std::chrono::milliseconds limit);
  void Append(Exposition* page) const;

 private:
  [[nodiscard]] std::optional<NodeStatusUpdate> Collect();
  // Takes the fabric's settings. After an error the earlier ones stay.
  Result<void> ApplySettings(const Fabric& fabric, const std::string& what);
  [[nodiscard]] std::map<std::string, PodDevice> InPods();
  void LogOutcome(const NodeStatusOutcome& outcome);
  void Complain(const Result<void>& followed);
  [[nodiscard]] std::shared_ptr<NodeStatusLoop> loop() const;

  const Root root_;
  Log* const log_;
  Sources sources_;
  KubeService service_;
  // The thread's, once there is one.
  NodeStatusSettings settings_;
  std::shared_ptr<NodeStatusWriter> writer_;  // nullptr: nothing is to be reported
  JournalCache journal_;
  std::string known_problem_;
  std::string complaint_;

  mutable std::mutex mutex_;
  std::optional<resources::Plan> plan_;
  std::shared_ptr<NodeStatusLoop> loop_;
};

}  // namespace railhead::node_status

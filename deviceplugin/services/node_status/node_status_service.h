// Isolation as railheadd runs it: from configuration to thread, log and metrics.
//
// Ownership: borrows the log, and what Sources refers to. Threads: thread-safe; Start() once.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/state/journal_cache.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/node_status/node_status_loop.h"
#include "deviceplugin/services/node_status/node_status_settings.h"
#include "deviceplugin/support/kubernetes/kube_config.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

class Isolation {
 public:
  struct Sources {
    std::function<std::vector<DeviceHealth>()> health;
    std::function<bool()> stands_by;  // a newer railheadd tells it
    std::function<bool(bool wanted)> may_taint;
  };

  Isolation(const Root& root, Log* log);

  // `plan` as for Planned(). A fabric that asks for none of it may do so later.
  Result<void> Start(const Plan& plan, const KubeService& service, Sources sources);
  void Planned(const Plan& plan);
  void HealthChanged();
  void Stop();
  // Whether the thread has ended, or there is none.
  bool AwaitEnd(std::chrono::milliseconds limit);
  void Append(Exposition* page) const;

 private:
  [[nodiscard]] std::optional<IsolationTurn> Look();
  // What the fabric asks for now. An error leaves what was.
  Result<void> Follow(const Fabric& fabric, const std::string& what);
  [[nodiscard]] std::map<std::string, PodDevice> InPods();
  void Write(const IsolationOutcome& outcome);
  void Complain(const Result<void>& followed);
  [[nodiscard]] std::shared_ptr<IsolationLoop> loop() const;

  const Root root_;
  Log* const log_;
  Sources sources_;
  KubeService service_;
  // The thread's, once there is one.
  IsolationSettings settings_;
  std::shared_ptr<Isolator> isolator_;  // nullptr: nothing is asked for
  JournalCache journal_;
  std::string known_problem_;
  std::string complaint_;

  mutable std::mutex mutex_;
  std::optional<Plan> plan_;
  std::shared_ptr<IsolationLoop> loop_;
};

}  // namespace railhead

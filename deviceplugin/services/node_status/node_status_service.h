// Isolation as railheadd runs it: from configuration to thread, log and metrics.
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
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::node_status {

// The thread of railheadd that tells the cluster of bad rails.
//
// It looks when it is woken, when a heartbeat is due, and again after what failed; it is never waited for.
// What is looked at says by which isolator it is told: with other settings, by another.
// Threads: its own one calls `look` and `report`; all else from any.
// Errors: none; what fails is reported and tried again.

struct IsolationStatus {
  IsolationCounts counts;
  std::optional<int> whole_rails;  // by the latest look; nullopt: none so far
};

struct IsolationTurn {
  std::shared_ptr<Isolator> isolator;  // nullptr: the cluster is told nothing, until Wake()
  Situation situation;
};

class IsolationLoop {
 public:
  // nullopt: nothing can be said yet, or another railheadd says it.
  using Look = std::function<std::optional<IsolationTurn>()>;
  using Report = std::function<void(const IsolationOutcome&)>;

  IsolationLoop(Look look, Report report);
  // Ends the thread; a request to the API is waited for.
  ~IsolationLoop();
  IsolationLoop(const IsolationLoop&) = delete;
  IsolationLoop& operator=(const IsolationLoop&) = delete;

  // Something may be different. Does not shorten the wait after a failure.
  void Wake();
  void Stop();
  // Whether the thread has ended.
  bool AwaitEnd(std::chrono::milliseconds limit);
  [[nodiscard]] IsolationStatus Status() const;

 private:
  void Loop();
  // How long to wait, and whether Wake() may end that.
  std::pair<std::chrono::milliseconds, bool> StepOnce();

  void Take(const IsolationTurn& turn);

  const Look look_;
  const Report report_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Isolator> isolator_;  // of the latest turn
  IsolationCounts earlier_;             // of those before it
  std::optional<int> whole_rails_;
  bool woken_ = false;
  bool stopped_ = false;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the others
};

class Isolation {
 public:
  struct Sources {
    std::function<std::vector<health::DeviceHealth>()> health;
    std::function<bool()> stands_by;  // a newer railheadd tells it
    std::function<bool(bool wanted)> may_taint;
  };

  Isolation(const Root& root, Log* log);

  // `plan` as for Planned(). A fabric that asks for none of it may do so later.
  Result<void> Start(const resources::Plan& plan, const KubeService& service, Sources sources);
  void Planned(const resources::Plan& plan);
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
  std::optional<resources::Plan> plan_;
  std::shared_ptr<IsolationLoop> loop_;
};

}  // namespace railhead::node_status

// Budget: the cluster's disruption budget in railheadd (services/node_status/disruption_budget.h):
// configuration, thread, log and metrics.
//
// Probes can take the devices of a rail out of use, and a node with too few healthy rails gets a taint. Both
// wait until this node has a place in the budget, which it keeps until both are over. While the store does
// not answer, a node without a place takes nothing out of use. A fabric without a cluster store has no
// budget: each node decides alone. Ownership: borrows log and verdicts. Threads: thread-safe; Open() before
// all others, then Start() once.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/node_status/disruption_budget.h"
#include "deviceplugin/services/reachability/reachability_service.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "deviceplugin/support/worker/worker.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::daemon {

class Budget {
 public:
  struct Sources {
    std::function<std::vector<health::DeviceHealth>()> health;
    std::function<bool()> is_standby;  // a newer railheadd keeps the node's place
    std::function<void()> changed;     // a place was got or lost
  };

  Budget(Root root, const reachability::RailVerdicts& rails, Log* log)
      : root_(std::move(root)), rails_(rails), log_(log) {}

  // Asks the store nothing yet.
  Result<void> Open(const resources::Plan& plan, const KubeService& service);
  void Start(Sources sources);
  void SetPlan(const resources::Plan& plan);
  // The state of a PF's rail for the health rules: never bad while this node has no place.
  [[nodiscard]] std::optional<health::ObservedRail> Admit(const std::string& pf) const;
  // Whether the node may be tainted; `wanted` says whether it is to be.
  bool MayTaint(bool wanted);
  void Stop();
  // Whether the thread has ended, or never ran.
  bool AwaitEnd(std::chrono::milliseconds limit);
  void Append(Exposition* page) const;

 private:
  using Clock = std::chrono::steady_clock;

  // As the store last said.
  enum class State : std::uint8_t { kFree, kHeld, kRefused };

  struct Settings {
    node_status::MaxUnavailable most;
    std::uint64_t nodes = 0;
  };

  void Step();
  [[nodiscard]] bool IsNeeded() const;
  [[nodiscard]] bool ProbesWithdraw() const;
  [[nodiscard]] std::optional<Settings> ReadSettings() const;
  void Acquire();
  void Release();
  void SetState(State state);
  void Complain(const Result<void>& done);

  const Root root_;
  const reachability::RailVerdicts& rails_;
  Log* const log_;
  Sources sources_;
  std::unique_ptr<ipam::ClusterStore> store_;  // nullptr: no budget
  std::unique_ptr<node_status::DisruptionBudget> places_;
  std::atomic<bool> held_{false};
  std::atomic<bool> taint_wanted_{false};
  std::atomic<bool> refused_{false};  // needs a place and has none
  // The thread's.
  State state_ = State::kFree;
  bool released_ = false;  // the store has no place of this node
  Clock::time_point next_try_{};
  std::string known_problem_;

  mutable std::mutex mutex_;
  resources::Plan plan_;
  std::optional<node_status::DisruptionBudget::Usage> usage_;
  std::unique_ptr<PassLoop> loop_;
};

}  // namespace railhead::daemon

// The cluster's disruption budget as railheadd keeps it (isolation/disruption_budget.h): from configuration
// to thread, log and metrics.
//
// What probes say of a rail takes devices out of use, and a node with too few whole rails gets a taint. Both
// wait until this node has a place in the budget, and the place is kept until both are over. While the store
// does not answer, a node without a place takes nothing out of use. A fabric without a cluster store has no
// budget: each node decides alone.
// Ownership: borrows log and verdicts. Threads: thread-safe; Open() before all others, then Start() once.
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
    std::function<bool()> stands_by;  // a newer railheadd keeps the node's place
    std::function<void()> changed;    // a place was got or lost
  };

  Budget(Root root, const reachability::RailVerdicts& rails, Log* log)
      : root_(std::move(root)), rails_(rails), log_(log) {}

  // Asks the store nothing yet.
  Result<void> Open(const resources::Plan& plan, const KubeService& service);
  void Start(Sources sources);
  void Planned(const resources::Plan& plan);
  // What the rules of health may know of a PF's rail: nothing bad while there is no place.
  [[nodiscard]] std::optional<health::ObservedRail> Admit(const std::string& pf) const;
  // Whether the node may be tainted; `wanted` says whether it is to be.
  bool MayTaint(bool wanted);
  void Stop();
  // Whether the thread has ended, or there is none.
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
  void Take();
  void Give();
  void Tell(State state);
  void Complain(const Result<void>& done);

  const Root root_;
  const reachability::RailVerdicts& rails_;
  Log* const log_;
  Sources sources_;
  std::unique_ptr<ipam::ClusterStore> store_;  // nullptr: there is no budget
  std::unique_ptr<node_status::DisruptionBudget> places_;
  std::atomic<bool> held_{false};
  std::atomic<bool> taint_wanted_{false};
  std::atomic<bool> refused_{false};  // needs a place and has none
  // The thread's.
  State state_ = State::kFree;
  bool given_ = false;  // the store has no place of this node
  Clock::time_point next_try_{};
  std::string known_problem_;

  mutable std::mutex mutex_;
  resources::Plan plan_;
  std::optional<node_status::DisruptionBudget::Usage> usage_;
  std::unique_ptr<PassLoop> loop_;
};

}  // namespace railhead::daemon

// Activity: the counters of the daemon, and its present advertisement.
//
// The parts count into it, through the callbacks that daemon.cc passes to them; metrics_page.cc
// and pages.h read it. No call of kubelet uses it: resource_activity.h of deviceplugin/services/kubelet
// counts those.
// Threads: thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cni/state/bind_protocol.h"
#include "deviceplugin/services/health/watch.h"
#include "deviceplugin/services/kubelet/advertisement.h"
#include "deviceplugin/services/reconcile/reconciler.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "deviceplugin/support/worker/worker.h"
#include "netns/base/result.h"

namespace railhead::daemon {

// A time of day that another thread reads.
class TimeOfDay {
 public:
  using Clock = std::chrono::system_clock;

  void SetNow() { time_ = Clock::now().time_since_epoch().count(); }
  // Since 1970; 0 before SetNow().
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::duration(time_.load())).count();
  }

 private:
  std::atomic<Clock::rep> time_{0};
};

// Of the node watcher's thread.
struct NodeActivity {
  Counter hardware_events;
  Counter file_events;
  Counter requests;  // SIGHUP
  Counter discoveries_started;
  Counter discoveries_done;
  Counter discovery_failures;
  std::atomic<bool> uevents_connected{true};  // the kernel sends device events
  std::atomic<bool> config_ok{true};
  TimeOfDay last_good;
};

class Activity {
 public:
  static constexpr std::size_t kErrorCodes = static_cast<std::size_t>(ErrorCode::kLimited) + 1;
  // The kind of an action of a pass, and its outcome.
  struct ReconcileKind {
    std::string what;
    bool failed = false;
    auto operator<=>(const ReconcileKind&) const = default;
  };

  void SetAdvertisement(const kubelet::Advertisement& advertisement);
  void Bound(const Result<Bindings>& answer, std::chrono::nanoseconds duration);
  void Reconciled(const reconcile::ReconcileReport& report);
  void Judged(const health::HealthTick& tick);
  void Watched(const reconcile::DriftReport& report);

  [[nodiscard]] kubelet::Advertisement advertisement() const;
  [[nodiscard]] std::map<ReconcileKind, std::uint64_t> reconcile_actions() const;
  // As of the latest pass that could read them.
  [[nodiscard]] std::vector<reconcile::PoolFacts> address_pools() const;
  // At the latest check for drift.
  [[nodiscard]] std::set<AttachmentKey> drifted_attachments() const;

  NodeActivity node;
  Heartbeats heartbeats;
  // Serving kubelet has begun; before that the daemon waits for the first reconcile pass.
  std::atomic<bool> serving{false};

  Counter bound;
  std::array<Counter, kErrorCodes> not_bound;  // by ErrorCode
  LatencyHistogram bind_duration;

  Counter passes;
  TimeOfDay last_pass;
  std::atomic<std::size_t> attachments{0};
  std::atomic<std::size_t> unreadable_entries{0};
  std::atomic<std::size_t> displaced_devices{0};
  Counter ignored_answers;  // of hosts that answer for many addresses

  // NcclConfigs of running pods at the latest check for drift.
  std::atomic<std::size_t> matching{0};
  std::atomic<std::size_t> drifted{0};
  Counter drifts;  // seen to begin

  std::array<Counter, health::kHealthRuleCount> fired;  // by HealthRule
  std::array<Counter, health::kHealthRuleCount> cleared;

 private:
  mutable std::mutex mutex_;
  kubelet::Advertisement advertisement_;
  std::map<ReconcileKind, std::uint64_t> reconcile_actions_;
  std::vector<reconcile::PoolFacts> address_pools_;
  std::set<AttachmentKey> drifted_attachments_;
};

}  // namespace railhead::daemon

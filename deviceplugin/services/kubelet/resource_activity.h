// ResourceActivity: counters and state of one resource's connection to kubelet. The servers and the registrar
// write it; metrics and probes read it.
// Ownership: shared by the registrar, its servers and the readers; it outlives the servers,
// which come and go. Threads: thread-safe.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "deviceplugin/support/metrics/counter.h"
#include "netns/base/mutex.h"

namespace railhead::kubelet {

struct CallActivity {
  Counter answered;
  Counter refused;
  LatencyHistogram duration;  // from the request's arrival to its answer
};

class ResourceActivity {
 public:
  explicit ResourceActivity(std::string name) : resource(std::move(name)) {}

  const std::string resource;
  CallActivity allocate;
  CallActivity preferred;
  CallActivity pre_start;
  Counter list_updates;
  Counter spec_rewrites;       // CDI specs that PreStartContainer found missing or changed
  Counter spec_read_timeouts;  // calls of PreStartContainer for which no runtime read the CDI specs in time
  Counter registrations;
  Counter registration_failures;
  std::atomic<int> streams{0};
  std::atomic<bool> serving{false};
  std::atomic<bool> registered{false};
  std::atomic<bool> standby{false};

  // Why it is not served or not registered; "" when it is.
  [[nodiscard]] std::string problem() const {
    const MutexLock lock(mutex_);
    return problem_;
  }
  void set_problem(std::string problem) {
    const MutexLock lock(mutex_);
    problem_ = std::move(problem);
  }

 private:
  mutable Mutex mutex_;
  std::string problem_ RH_GUARDED_BY(mutex_);
};

}  // namespace railhead::kubelet

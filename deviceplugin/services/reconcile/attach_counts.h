// AttachCounts: outcomes and durations of ADDs, from the CNI plugin's log of timings.
//
// Counts the lines since the daemon started.
// Threads: thread-safe. Lines that cannot be read now are counted later.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "cni/state/attach_log.h"
#include "cni/state/attach_log_tail.h"
#include "deviceplugin/support/metrics/counter.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/mutex.h"
#include "netns/base/root.h"

namespace railhead::reconcile {

class AttachCounts {
 public:
  explicit AttachCounts(const Root& root) : tail_(root) {}

  // Counts the lines that have come.
  void Read();
  // Reads first.
  void Append(Exposition* page);

 private:
  // The log names the phases. This limit keeps the page short.
  static constexpr std::size_t kMostPhases = 64;

  void ReadLocked() RH_REQUIRES(mutex_);
  void Count(const AttachTiming& timing) RH_REQUIRES(mutex_);

  Mutex mutex_;
  AttachLogTail tail_ RH_GUARDED_BY(mutex_);
  std::uint64_t attached_ RH_GUARDED_BY(mutex_) = 0;
  std::uint64_t failed_ RH_GUARDED_BY(mutex_) = 0;
  LatencyHistogram duration_ RH_GUARDED_BY(mutex_);  // of those that attached
  std::map<std::string, std::chrono::microseconds> phases_ RH_GUARDED_BY(mutex_);
};

}  // namespace railhead::reconcile

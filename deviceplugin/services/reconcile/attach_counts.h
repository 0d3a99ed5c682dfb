// AttachCounts: outcomes and durations of ADDs, from the CNI plugin's log of timings.
//
// Counts the lines since the daemon started.
// Threads: thread-safe. Lines that cannot be read now are counted later.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "cni/state/attach_log.h"
#include "cni/state/attach_log_tail.h"
#include "deviceplugin/support/metrics/exposition.h"
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

  void ReadLocked();
  void Count(const AttachTiming& timing);

  std::mutex mutex_;
  AttachLogTail tail_;
  std::uint64_t attached_ = 0;
  std::uint64_t failed_ = 0;
  LatencyHistogram duration_;  // of those that attached
  std::map<std::string, std::chrono::microseconds> phases_;
};

}  // namespace railhead::reconcile

// How ADDs end and what they spend their time with, out of the CNI plugin's log of timings.
//
// Counts what was logged since the daemon started; the log is read when somebody asks.
// Threads: thread-safe. What cannot be read is counted when it can.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "cni/state/attach_log_tail.h"
#include "deviceplugin/support/metrics/counter.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/root.h"

namespace railhead {

class AttachCounts {
 public:
  explicit AttachCounts(const Root& root) : tail_(root) {}

  void Append(Exposition* page);

 private:
  // The log says what phases there are; a page stays short whatever it says.
  static constexpr std::size_t kMostPhases = 64;

  void Count(const AttachTiming& timing);

  std::mutex mutex_;
  AttachLogTail tail_;
  std::uint64_t attached_ = 0;
  std::uint64_t failed_ = 0;
  LatencyHistogram duration_;  // of those that attached
  std::map<std::string, std::chrono::microseconds> phases_;
};

}  // namespace railhead

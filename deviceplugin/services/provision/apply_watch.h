// ApplyWatch: reports the progress of making VFs, and can stop it.
//
// The texts are for people. A stop takes effect between two steps, and while the thread waits for drivers,
// interfaces or locks. A write to sysfs cannot be stopped: it takes as long as the kernel needs.
// Threads: the thread that applies calls `report_progress`; any may set `stop`.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "netns/base/result.h"

namespace railhead::provision {

struct ApplyWatch {
  // "provisioning PF pf0 (0000:43:00.0)": the current step, until the next call.
  std::function<void(const std::string& what)> report_progress = nullptr;
  // nullptr: it cannot be stopped.
  const std::atomic<bool>* stop = nullptr;

  void ReportProgress(const std::string& what) const {
    if (report_progress) report_progress(what);
  }
  [[nodiscard]] bool Stopped() const { return stop != nullptr && stop->load(); }
};

// `what` was stopped before its end.
inline Error StoppedError(const std::string& what) {
  return {ErrorCode::kUnavailable, what + ": stopped before it was done",
          "start it again: it goes on, or begins again where something is half done", 0};
}

}  // namespace railhead::provision

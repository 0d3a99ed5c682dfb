// Who looks on while VFs are made, and may end it.
//
// What it says is for people. A stop is heard between two steps and while drivers, interfaces
// or locks are waited for; a write to sysfs takes as long as the kernel needs.
// Threads: `doing` is called by the thread that applies; `stop` is set by any.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "netns/base/error.h"

namespace railhead {

struct ApplyWatch {
  // "provisioning PF pf0 (0000:43:00.0)": from now on, until the next.
  std::function<void(const std::string& what)> doing = nullptr;
  // nullptr: nobody stops it.
  const std::atomic<bool>* stop = nullptr;

  void Doing(const std::string& what) const {
    if (doing) doing(what);
  }
  [[nodiscard]] bool Stopped() const { return stop != nullptr && stop->load(); }
};

// `what` was not ended.
inline Error StoppedError(const std::string& what) {
  return {ErrorCode::kUnavailable, what + ": stopped before it was done",
          "start it again: it goes on, or begins again where something is half done", 0};
}

}  // namespace railhead

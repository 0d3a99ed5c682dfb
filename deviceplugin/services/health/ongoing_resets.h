// Which devices are being reset between two pods (cni/attachment/reset.h).
//
// Such a device is without its driver for a moment, and is the same afterwards. kubelet fails a pod that the
// scheduler has sent to the node when fewer devices are Healthy by then (manager.go, devicesToAllocate): what
// is seen of a device during a reset changes nothing. A reset that lasts longer than resets do is another
// matter: its device is not ready.
// Source: the resets' entries in the journal. Threads: one.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "netns/base/root.h"

namespace railhead {

class OngoingResets {
 public:
  using Clock = std::chrono::steady_clock;

  explicit OngoingResets(Root root) : root_(std::move(root)) {}

  void Refresh(Clock::time_point now = Clock::now());
  [[nodiscard]] const std::set<std::string>& brief() const { return brief_; }
  [[nodiscard]] const std::set<std::string>& lasting() const { return lasting_; }

 private:
  Root root_;
  std::map<std::string, Clock::time_point> since_;  // first seen
  std::set<std::string> brief_;
  std::set<std::string> lasting_;
};

}  // namespace railhead

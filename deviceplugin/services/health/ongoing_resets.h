// OngoingResets: the devices that are being reset between two pods (cni/attachment/reset.h).
//
// Such a device has no driver for a moment, and is the same afterwards. The scheduler may have sent a pod to
// the node already. If fewer devices are Healthy at admission, kubelet fails that pod (manager.go,
// devicesToAllocate). So the state of a device during a reset changes nothing. The device of a reset that
// takes too long is not ready. Source: the resets' entries in the journal. Threads: one.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "netns/base/root.h"

namespace railhead::health {

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

}  // namespace railhead::health

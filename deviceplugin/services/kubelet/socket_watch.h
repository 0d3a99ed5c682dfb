// SocketWatch: waits until sockets come or go in a directory, the worker is woken, or a time has come. It
// also records sockets that came and went in between.
//
// If the directory is missing or has gone, the next Watch() watches it again. Until then the wait ends once a
// second.
// Errors: Check() returns the error of the constructor; nothing else fails.
// Threads: one.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/support/service/worker.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead::kubelet {

class SocketWatch {
 public:
  using Clock = std::chrono::steady_clock;

  SocketWatch();

  [[nodiscard]] Result<void> Check() const;
  void Watch(const std::string& directory);
  // Returns at `until`, or after half a minute if that is earlier: an event may have been lost.
  void WaitUntil(Worker& worker, Clock::time_point until);
  // Names of sockets that came and went while the directory was watched, since the last call.
  [[nodiscard]] std::vector<std::string> TakeRemovedSockets() { return std::exchange(removed_sockets_, {}); }

 private:
  void ReadEvents();

  const UniqueFd inotify_;
  bool watching_ = false;
  std::set<std::string> created_;
  std::vector<std::string> removed_sockets_;
};

}  // namespace railhead::kubelet

// Waits until sockets come or go in a few directories, somebody calls Wake(), or it is time.
//
// A directory that is not there, or goes, is watched again by the next Watch(); until then a look
// a second stands in for its events.
// Errors: Check() says what Open() lacked; nothing else fails.
// Threads: Wake() from any, the rest from one.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead {

class SocketWatch {
 public:
  using Clock = std::chrono::steady_clock;

  SocketWatch();

  [[nodiscard]] Result<void> Check() const;
  void Watch(const std::vector<std::string>& directories);
  void Wake() const;
  // Returns at `until` at the latest, and in any case after half a minute: so much a lost event costs.
  void WaitUntil(Clock::time_point until) const;

 private:
  const UniqueFd wake_;
  const UniqueFd inotify_;
  bool all_watched_ = false;
};

}  // namespace railhead

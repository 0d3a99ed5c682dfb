// Waits until sockets come or go in a few directories, somebody calls Wake(), or it is time; and knows
// who came and went while nobody looked.
//
// A directory that is not there, or goes, is watched again by the next Watch(); until then a look
// a second stands in for its events.
// Errors: Check() says what Open() lacked; nothing else fails.
// Threads: Wake() from any, the rest from one.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <utility>
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
  void WaitUntil(Clock::time_point until);
  // Names of those that came and went, both while the directory was watched, and were not taken yet.
  [[nodiscard]] std::vector<std::string> TakePassed() { return std::exchange(passed_, {}); }

 private:
  void ReadEvents();

  const UniqueFd wake_;
  const UniqueFd inotify_;
  bool all_watched_ = false;
  std::set<std::string> come_;
  std::vector<std::string> passed_;
};

}  // namespace railhead

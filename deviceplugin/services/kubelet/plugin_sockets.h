// Waits until sockets come or go in a few directories, somebody calls Wake(), or it is time; and knows
// who came and went while nobody looked.
//
// A directory that is not there, or goes, is watched again by the next Watch(); until then a look
// a second stands in for its events.
// Errors: Check() says what Open() lacked; nothing else fails.
// Threads: Wake() from any, the rest from one.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead::kubelet {

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

// Other servers of the same resource: an older or a newer railheadd beside this one, as during an
// update.
//
// Of two plugins with one name kubelet asks the one that registered last. It does not close the other's
// stream then, whose lists go on to count; and when the stream of either ends, kubelet (Kubernetes 1.36,
// plugin/v1beta1/handler.go) takes it for the end of whoever registered last. So an open stream does not
// tell that one is being asked: a server that has seen another one leave must register again. One may come
// and leave between two looks, as on a busy machine: of that its socket's events tell.
//
// Threads: not thread-safe.

struct OtherServer {
  std::string name;    // of its socket
  bool newer = false;  // made after ours
};

// Whether this is the socket of a server of the same resource in another process.
bool IsOther(const std::string& name, const std::string& own_name);
// Those that are being served now. `own_name` as SocketName() made it.
std::vector<OtherServer> OtherServers(const std::string& directory, const std::string& own_name);

class Siblings {
 public:
  struct Seen {
    std::optional<std::string> newer;  // one that is there
    bool newer_left = false;           // since the last look
    bool older_left = false;
  };

  // `passed`: sockets that came and went since the last look.
  Seen Look(const std::string& directory, const std::string& own_name, std::span<const std::string> passed);
  // Whether there was one at the last look. One that is killed leaves no event.
  [[nodiscard]] bool any() const { return !newer_.empty() || !older_.empty(); }

 private:
  std::set<std::string> newer_;
  std::set<std::string> older_;
  std::set<std::string> met_;  // at any look
};

}  // namespace railhead::kubelet

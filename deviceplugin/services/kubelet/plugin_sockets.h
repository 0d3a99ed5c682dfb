// SocketWatch: waits until sockets come or go in a directory, Wake() is called, or a time has come. It also
// records sockets that came and went in between.
//
// If the directory is missing or has gone, the next Watch() watches it again. Until then the wait ends once a
// second.
// Errors: Check() returns the error of the constructor; nothing else fails.
// Threads: Wake() from any, the others from one.
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
  void Watch(const std::string& directory);
  void Wake() const;
  // Returns at `until`, or after half a minute if that is earlier: an event may have been lost.
  void WaitUntil(Clock::time_point until);
  // Names of sockets that came and went while the directory was watched, since the last call.
  [[nodiscard]] std::vector<std::string> TakeRemovedSockets() { return std::exchange(removed_sockets_, {}); }

 private:
  void ReadEvents();

  const UniqueFd wake_;
  const UniqueFd inotify_;
  bool watching_ = false;
  std::set<std::string> created_;
  std::vector<std::string> removed_sockets_;
};

// Other servers of the same resource: an older or a newer railheadd beside this one, as during an
// update.
//
// If two plugins have one name, kubelet calls the one that registered last. It does not close the other's
// stream then, and still uses its lists. When the stream of either ends, kubelet (Kubernetes 1.36,
// plugin/v1beta1/handler.go) takes it for the end of the one that registered last. So an open stream does not
// mean that kubelet calls this server: a server that has seen another one end must register again. On a busy
// machine another server may come and go between two updates. The events of its socket show that.
//
// Threads: not thread-safe.

struct OtherServer {
  std::string name;    // of its socket
  bool newer = false;  // made after ours
};

// Whether this is the socket of a server of the same resource in another process.
bool IsOther(const std::string& name, const std::string& own_name);
// The servers that serve now. SocketName() made `own_name`.
std::vector<OtherServer> OtherServers(const std::string& directory, const std::string& own_name);

class OtherInstances {
 public:
  struct Changes {
    std::optional<std::string> newer;  // one that is there
    bool newer_left = false;           // since the last update
    bool older_left = false;
  };

  // `passed`: sockets that came and went since the last update.
  Changes Update(const std::string& directory, const std::string& own_name,
                 std::span<const std::string> passed);
  // Whether another server existed at the last update. A killed one causes no event.
  [[nodiscard]] bool any() const { return !newer_.empty() || !older_.empty(); }

 private:
  std::set<std::string> newer_;
  std::set<std::string> older_;
  std::set<std::string> known_;  // at any update
};

}  // namespace railhead::kubelet

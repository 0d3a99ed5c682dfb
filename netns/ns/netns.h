// NetNs: a handle on a network namespace.
//
// Holds an open descriptor, so the namespace lives as long as the handle; keep it for one operation only. No
// code of ours runs in another namespace, with two exceptions: socket(2), and short-lived forked helpers. For
// socket(2) the calling thread switches its namespace, and back before it returns (OpenSocketsIn()).
// Threads: a handle is a value; OpenSocketsIn() may be used from any thread.
#pragma once

#include <functional>
#include <string>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead {

class NetNs {
 public:
  // Errors: kNotFound when the path does not exist or no longer holds a namespace (a runtime unmounts it and
  // keeps an empty file). Also kInvalid when it is a namespace of another kind.
  static Result<NetNs> Open(const std::string& path);
  // The namespace of the calling thread.
  static Result<NetNs> Current();
  // A new one, with its lo, down. It lives as long as a handle or a process is in it. No path in the file
  // system shows it; messages call it `name`. Needs CAP_SYS_ADMIN.
  static Result<NetNs> Make(const std::string& name);
  // Takes `fd` as it is, without asking whether it is a namespace: for fakes.
  static Result<NetNs> FromFd(UniqueFd fd, std::string path);

  [[nodiscard]] int fd() const { return fd_.get(); }
  // As given to Open(); for messages.
  [[nodiscard]] const std::string& path() const { return path_; }
  // Two handles on one namespace compare equal (device and inode number).
  [[nodiscard]] bool SameAs(const NetNs& other) const {
    return device_ == other.device_ && inode_ == other.inode_;
  }
  [[nodiscard]] unsigned long long inode() const { return inode_; }

 private:
  NetNs() = default;
  UniqueFd fd_;
  std::string path_;
  unsigned long long device_ = 0;
  unsigned long long inode_ = 0;
};

// Runs `open` with the calling thread in `ns` and returns to the namespace it
// was in. `open` must do nothing but create sockets, or open files below
// /proc/sys/net, which are that namespace's then. If the way back fails the
// process aborts: going on in the wrong namespace would change the wrong node.
Result<void> OpenSocketsIn(const NetNs& ns, const std::function<Result<void>()>& open);

}  // namespace railhead

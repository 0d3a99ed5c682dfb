// NetNs: a handle on a network namespace.
//
// Holds an open descriptor, so the namespace lives as long as the handle; keep it for one operation only. No
// code of ours runs in another namespace, with two exceptions: socket(2), and short-lived forked helpers. For
// socket(2) the calling thread switches its namespace, and back before it returns (see SocketFactory below).
// Threads: a handle is a value; OpenSocketIn may be used from any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/files.h"
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

// Whether this process sees mounts that the host makes later. A namespace that a runtime makes is a mount
// below /run/netns. A container sees such a mount only with mount propagation (HostToContainer).
//
// Without propagation the file is there, as the directory is the host's, but it looks like the remains of a
// deleted namespace. Source: Documentation/filesystems/sharedsubtree.rst; proc(5), mountinfo. Threads:
// thread-safe. Errors: those of reading /proc.

// Where runtimes have namespaces; /var/run is the same directory on most hosts.
inline constexpr const char* kNetnsDirectories[] = {"/run/netns", "/var/run/netns"};

// Whether the mount that has `directory` gets the host's mounts, by the text of /proc/self/mountinfo: its
// line is shared or a slave. True when no mount has it.
bool PropagatesTo(std::string_view mountinfo, const std::string& directory);

// The same of this process; also true in the mount namespace of process 1, where the host makes its mounts.
Result<bool> SeesMountsOfHost(const Root& root, const std::string& directory);

// Which processes a network namespace has.
//
// Checks every process in /proc (one stat(2) each), but not threads in another namespace than their process.
// A namespace that only a descriptor or a mount holds has no process.
//
// Identifies a namespace by the inode number of its file net/dev in procfs, which is its own (proc_register
// in fs/proc/generic.c). Reading /proc/PID/ns/net would need the right to trace the process; this file does
// not. Needs the node's /proc: a private PID namespace shows less. Threads: any.

// Stops at the first process.
Result<bool> HasProcesses(const NetNs& ns);
// In the order of /proc. Each may have ended since.
Result<std::vector<pid_t>> ProcessesIn(const NetNs& ns);

// The one place where code of ours runs in another network namespace: a short-lived child process. It reads
// facts that only sysfs or /proc/sys of that namespace has.
//
// The child gets a private mount namespace with that network namespace's sysfs on /sys; /proc/sys/net follows
// the process by itself. It sends its result through a pipe and ends by _exit (or with its parent, or at the
// deadline). It closes all other descriptors first: a lock that another thread of the parent holds is not its
// own. `work` opens what it needs.
// When the function returns, the child and its mounts are gone.
// Needs CAP_SYS_ADMIN. Threads: any. The child is a copy of the calling thread alone. So `work` must not take
// locks that other threads may hold (malloc is safe with glibc).

// kTimeout when `work` is not done at the deadline; it is killed then.
Result<std::string> RunInNamespace(const NetNs& ns, std::chrono::steady_clock::time_point deadline,
                                   const std::function<Result<std::string>()>& work);

// The child's first step, for processes that are forked otherwise: takes the calling process there for good.
// kPermission without CAP_SYS_ADMIN.
Result<void> EnterForGood(const NetNs& ns);

}  // namespace railhead

// The machine that the plugin sees: a host that can be thrown away, containers, and what
// is in them.
//
// EnterOwnHost() gives this process network and mount namespaces of its own, so that a
// plugin that makes bridges or keeps state leaves no trace on the machine. A Sandbox is
// a container's network namespace behind a path, as runtimes make them.
// Threads: EnterOwnHost before any other thread exists; the rest any.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead::conformance {

inline constexpr const char* kSandboxDirectory = "/run/netns";

// Needs CAP_SYS_ADMIN. /run, /var/lib/cni and /sys are new ones in there.
Result<void> EnterOwnHost();

class Sandbox {
 public:
  static Result<Sandbox> Make(const std::string& name);
  Sandbox(Sandbox&& other) noexcept;
  Sandbox& operator=(Sandbox&&) = delete;
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  ~Sandbox();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Result<NetNs> Open() const { return NetNs::Open(path_); }
  // The number in /proc/PID/ns/net.
  [[nodiscard]] unsigned long long inode() const { return inode_; }

  // As runtimes take it away; with `keep_file` an empty file stays at the path, as
  // after a crash between umount and unlink.
  void Destroy(bool keep_file = false);

 private:
  Sandbox(std::string path, unsigned long long inode) : path_(std::move(path)), inode_(inode) {}
  std::string path_;
  unsigned long long inode_;
  bool alive_ = true;
};

// Links, addresses, routes and rules as lines, sorted. What the kernel makes by itself
// and at its own time (link-local addresses, the local table) is left out.
Result<std::vector<std::string>> Snapshot(const NetNs& ns);

// "- line" for what has gone and "+ line" for what is new; "" when equal.
std::string Difference(const std::vector<std::string>& before, const std::vector<std::string>& after);

// Descendants of this process, zombies reaped; as "PID NAME".
std::vector<std::string> LivingChildren();
// Processes in the namespace or with a descriptor of it, this one aside.
std::vector<std::string> UsersOfNamespace(unsigned long long inode);

}  // namespace railhead::conformance

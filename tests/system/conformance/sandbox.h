// The machine that the plugin sees: a disposable host, containers, and their content.
//
// EnterOwnHost() gives this process its own network and mount namespaces. So a plugin that makes bridges or
// keeps state does not change the machine. A Sandbox is a container's network namespace behind a path, as
// runtimes make them.
// Threads: EnterOwnHost before any other thread exists; the rest any.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead::conformance {

inline constexpr const char* kSandboxDirectory = "/run/netns";

// Needs CAP_SYS_ADMIN. /run, /var/lib/cni and /sys are new in these namespaces.
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

  // Removes it as runtimes do. With `keep_file` an empty file stays at the path, as after a crash between
  // umount and unlink.
  void Destroy(bool keep_file = false);

 private:
  Sandbox(std::string path, unsigned long long inode) : path_(std::move(path)), inode_(inode) {}
  std::string path_;
  unsigned long long inode_;
  bool alive_ = true;
};

// Links, addresses, routes and rules as sorted lines. It omits what the kernel adds by itself at any time
// (link-local addresses, the local table).
Result<std::vector<std::string>> Snapshot(const NetNs& ns);

// "- line" for each removed line and "+ line" for each new one; "" when equal.
std::string Difference(const std::vector<std::string>& before, const std::vector<std::string>& after);

// Reaps zombies and returns the descendants of this process as "PID NAME".
std::vector<std::string> LivingChildren();
// Processes other than this one that are in the namespace or hold a descriptor for the namespace.
std::vector<std::string> UsersOfNamespace(unsigned long long inode);

}  // namespace railhead::conformance

#include "netns/ns/netns.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

constexpr char kGoneHint[] = "the sandbox is gone already; nothing is left to do in it";

}  // namespace

Result<NetNs> NetNs::Open(const std::string& path) {
  const std::string what = "opening network namespace " + path;
  // O_NONBLOCK: a FIFO in its place must not hang the caller.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    // ENOTDIR, ESRCH: /proc/PID/ns/net of a process that is gone.
    const int code = errno == ENOTDIR || errno == ESRCH ? ENOENT : errno;
    Error error = SysError(code, what);
    if (code == ENOENT) error.hint = kGoneHint;
    return Fail(std::move(error));
  }
  struct statfs file_system {};
  if (fstatfs(fd.get(), &file_system) != 0) return FailSys(errno, what);
  if (file_system.f_type != NSFS_MAGIC) {
    return Fail(ErrorCode::kNotFound, what + ": it is a plain file, no namespace is mounted there",
                kGoneHint);
  }
  const int kind = ioctl(fd.get(), NS_GET_NSTYPE);
  if (kind < 0) return FailSys(errno, what);
  if (kind != CLONE_NEWNET) {
    return Fail(ErrorCode::kInvalid, what + ": it is a namespace of another kind",
                "give the path of the sandbox's network namespace, as in /var/run/netns/NAME");
  }
  return FromFd(std::move(fd), path);
}

Result<NetNs> NetNs::Current() {
  return Open("/proc/thread-self/ns/net");
}

Result<NetNs> NetNs::Make(const std::string& name) {
  // In a thread of its own, which ends in the new one: the calling thread stays where it is, whatever fails.
  Result<UniqueFd> made = UniqueFd();
  std::thread([&made, &name] {
    if (unshare(CLONE_NEWNET) != 0) {
      Error error = SysError(errno, "making network namespace " + name);
      if (error.sys_errno == EPERM) error.hint = "this needs CAP_SYS_ADMIN";
      made = Fail(std::move(error));
      return;
    }
    made = UniqueFd(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!made->valid()) made = FailSys(errno, "opening network namespace " + name);
  }).join();
  return FromFd(RH_TRY(std::move(made)), name);
}

Result<NetNs> NetNs::FromFd(UniqueFd fd, std::string path) {
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return FailSys(errno, "looking at network namespace " + path);
  NetNs ns;
  ns.fd_ = std::move(fd);
  ns.path_ = std::move(path);
  ns.device_ = status.st_dev;
  ns.inode_ = status.st_ino;
  return ns;
}

Result<void> OpenSocketsIn(const NetNs& ns, const std::function<Result<void>()>& open) {
  const NetNs home = RH_TRY(NetNs::Current());
  if (home.SameAs(ns)) return open();
  if (setns(ns.fd(), CLONE_NEWNET) != 0) {
    Error error = SysError(errno, "entering network namespace " + ns.path());
    if (error.sys_errno == EPERM) error.hint = "this needs CAP_SYS_ADMIN";
    return Fail(std::move(error));
  }
  Result<void> opened = open();
  if (setns(home.fd(), CLONE_NEWNET) != 0) {
    std::perror("railhead: cannot return to the own network namespace");
    std::abort();
  }
  return opened;
}

namespace {

// PROC_PID_INIT_INO of include/linux/proc_ns.h. In another PID namespace process 1 is not the host's.
constexpr const char* kFirstPidNamespace = "pid:[4026531836]";
constexpr std::size_t kMountPoint = 4;
constexpr std::size_t kFirstTag = 6;

bool IsBelow(const std::string& path, const std::string& mount_point) {
  return mount_point == "/" || path == mount_point || path.starts_with(mount_point + "/");
}

// Without links, as mountinfo has it.
std::string Resolved(const Root& root, const std::string& path) {
  const std::string full = root.Path(path);
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(full.c_str(), nullptr), std::free);
  if (!real) return path;
  const std::string resolved(real.get());
  const std::string& prefix = root.prefix();
  return !prefix.empty() && resolved.starts_with(prefix) ? resolved.substr(prefix.size()) : resolved;
}

Result<bool> IsWithProcessOne(const Root& root) {
  const auto pids = RH_TRY(ReadLink(root.Path("/proc/self/ns/pid")));
  const auto own = RH_TRY(ReadLink(root.Path("/proc/self/ns/mnt")));
  const auto first = RH_TRY(ReadLink(root.Path("/proc/1/ns/mnt")));
  return pids == kFirstPidNamespace && own && own == first;
}

}  // namespace

bool PropagatesTo(std::string_view mountinfo, const std::string& directory) {
  std::string nearest;
  bool propagates = true;
  for (const std::string& line : Split(mountinfo, '\n')) {
    const auto fields = Split(line, ' ');
    if (fields.size() <= kFirstTag || !IsBelow(directory, fields[kMountPoint])) continue;
    // A later mount of the same place hides the earlier one.
    if (fields[kMountPoint].size() < nearest.size()) continue;
    nearest = fields[kMountPoint];
    propagates = false;
    for (std::size_t i = kFirstTag; i < fields.size() && fields[i] != "-"; ++i)
      propagates = propagates || fields[i].starts_with("shared:") || fields[i].starts_with("master:");
  }
  return propagates;
}

Result<bool> SeesMountsOfHost(const Root& root, const std::string& directory) {
  const auto text = RH_TRY(ReadFile(root.Path("/proc/self/mountinfo")));
  if (!text || PropagatesTo(*text, Resolved(root, directory))) return true;
  return IsWithProcessOne(root).value_or(false);
}

namespace {

Result<ino_t> InodeOfNamespace(const NetNs& ns) {
  UniqueFd fd;
  const auto open_file = [&]() -> Result<void> {
    fd.Reset(open("/proc/thread-self/net/dev", O_PATH | O_CLOEXEC));
    if (!fd.valid()) return FailSys(errno, "opening its net/dev");
    return {};
  };
  RH_TRY(OpenSocketsIn(ns, open_file));
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return FailSys(errno, "looking at its net/dev");
  return status.st_ino;
}

// Those: it ended meanwhile, or is a zombie.
bool HasEnded(int error) {
  return error == ENOENT || error == ESRCH || error == EINVAL;
}

Result<std::vector<pid_t>> Look(const NetNs& ns, bool one_is_enough) {
  const std::string what = "looking for processes in network namespace " + ns.path();
  const ino_t wanted = RH_TRY_WRAP(InodeOfNamespace(ns), what);
  const auto names = RH_TRY_WRAP(ListDirectory("/proc"), what);
  if (!names) return Fail(ErrorCode::kNotFound, what + ": there is no /proc", "mount it");
  std::vector<pid_t> found;
  for (const std::string& name : *names) {
    pid_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || end != name.data() + name.size()) continue;
    const std::string path = "/proc/" + name + "/net/dev";
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) {
      if (HasEnded(errno)) continue;
      return Fail(Wrap(SysError(errno, path), what));
    }
    if (status.st_ino != wanted) continue;
    found.push_back(pid);
    if (one_is_enough) break;
  }
  return found;
}

}  // namespace

Result<bool> HasProcesses(const NetNs& ns) {
  return !RH_TRY(Look(ns, true)).empty();
}

Result<std::vector<pid_t>> ProcessesIn(const NetNs& ns) {
  return Look(ns, false);
}

}  // namespace railhead

#include "netns/ns/netns.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

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
  const NetNs original = RH_TRY(NetNs::Current());
  if (original.SameAs(ns)) return open();
  if (setns(ns.fd(), CLONE_NEWNET) != 0) {
    Error error = SysError(errno, "entering network namespace " + ns.path());
    if (error.sys_errno == EPERM) error.hint = "this needs CAP_SYS_ADMIN";
    return Fail(std::move(error));
  }
  Result<void> opened = open();
  if (setns(original.fd(), CLONE_NEWNET) != 0) {
    std::perror("railhead: cannot return to the own network namespace");
    std::abort();
  }
  return opened;
}

}  // namespace railhead

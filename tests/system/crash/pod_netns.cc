#include "tests/system/crash/pod_netns.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "netns/base/root.h"
#include "netns/base/unique_fd.h"
#include "netns/linux_kernel.h"

namespace railhead::crash {
namespace {

Result<void> MountNew(const std::string& path) {
  if (::unshare(CLONE_NEWNET) != 0) return FailSys(errno, "making a network namespace");
  if (::mount("/proc/thread-self/ns/net", path.c_str(), "none", MS_BIND, nullptr) != 0)
    return FailSys(errno, "mounting a network namespace on " + path);
  return {};
}

}  // namespace

Result<void> MakePodNetns(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return FailSys(errno, "making " + path);
  Result<void> mounted;
  // The calling thread stays in its namespace.
  std::thread([&] { mounted = MountNew(path); }).join();
  RH_TRY(mounted);
  LinuxKernel kernel{Root()};
  const NetNs ns = RH_TRY(kernel.OpenNetns(path));
  const auto route = RH_TRY(kernel.OpenRoute(ns));
  const auto lo = RH_TRY(route->FindLink("lo"));
  if (!lo) return Fail(ErrorCode::kNotFound, path + " has no lo");
  return route->ChangeLink(lo->index, {.up = true});
}

Result<void> RemovePodNetns(const std::string& path) {
  if (::umount2(path.c_str(), MNT_DETACH) != 0) return FailSys(errno, "unmounting " + path);
  if (::unlink(path.c_str()) != 0) return FailSys(errno, "removing " + path);
  return {};
}

}  // namespace railhead::crash

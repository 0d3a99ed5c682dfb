#include "netns/ns/processes.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "netns/base/files.h"

namespace railhead {

Result<bool> HasProcesses(const NetNs& ns) {
  const std::string what = "looking for processes in network namespace " + ns.path();
  struct stat wanted {};
  if (fstat(ns.fd(), &wanted) != 0) return FailSys(errno, what);
  const auto names = RH_TRY_WRAP(ListDirectory("/proc"), what);
  if (!names) return Fail(ErrorCode::kNotFound, what + ": there is no /proc", "mount it");
  for (const std::string& name : *names) {
    if (!std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) continue;
    struct stat found {};
    const std::string path = "/proc/" + name + "/ns/net";
    if (stat(path.c_str(), &found) == 0) {
      if (found.st_dev == wanted.st_dev && found.st_ino == wanted.st_ino) return true;
      continue;
    }
    // It ended meanwhile, or is a zombie.
    if (errno == ENOENT || errno == ESRCH) continue;
    Error error = SysError(errno, what + ": " + path);
    if (error.code == ErrorCode::kPermission) error.hint = "this needs CAP_SYS_PTRACE";
    return Fail(std::move(error));
  }
  return false;
}

}  // namespace railhead

#include "netns/ns/processes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>

#include "netns/base/files.h"
#include "netns/base/unique_fd.h"

namespace railhead {
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

// With one of these errors the process has ended in between, or is a zombie.
bool HasEnded(int error) {
  return error == ENOENT || error == ESRCH || error == EINVAL;
}

Result<std::vector<pid_t>> Look(const NetNs& ns, bool one_is_enough) {
  const std::string what = "looking for processes in network namespace " + ns.path();
  const ino_t wanted = RH_TRY_WRAP(InodeOfNamespace(ns), what);
  const auto names = RH_TRY_WRAP(ListDirectory("/proc"), what);
  if (!names) return Fail(ErrorCode::kNotFound, what + ": /proc does not exist", "mount it");
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

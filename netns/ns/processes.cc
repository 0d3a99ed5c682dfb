#include "netns/ns/processes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>

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

}  // namespace

Result<bool> HasProcesses(const NetNs& ns) {
  const std::string what = "looking for processes in network namespace " + ns.path();
  const ino_t wanted = RH_TRY_WRAP(InodeOfNamespace(ns), what);
  const auto names = RH_TRY_WRAP(ListDirectory("/proc"), what);
  if (!names) return Fail(ErrorCode::kNotFound, what + ": there is no /proc", "mount it");
  for (const std::string& name : *names) {
    if (!std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) continue;
    const std::string path = "/proc/" + name + "/net/dev";
    struct stat found {};
    if (stat(path.c_str(), &found) == 0) {
      if (found.st_ino == wanted) return true;
    } else if (errno != ENOENT && errno != ESRCH && errno != EINVAL) {
      // Those: it ended meanwhile, or is a zombie.
      return Fail(Wrap(SysError(errno, path), what));
    }
  }
  return false;
}

}  // namespace railhead

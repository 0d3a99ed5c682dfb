// What a writer that was killed left beside its own files: CDI specs, those of Allocate, those that describe
// the node, and the socket that was to become the one for ADD. Nobody reads them, but they would stay.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "cni/state/paths.h"
#include "deviceplugin/reconcile/pass.h"
#include "netns/base/files.h"
#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

constexpr const char* kKilled = "its writer was killed";

struct Place {
  std::string directory;
  std::string prefix;  // others have files there, too
  std::string suffix;  // before kTemporarySuffix
};

std::vector<Place> PlacesOf(const Root& root) {
  return {{paths::Allocations(root), "", ".json"},
          {paths::DeviceInfos(root), "", "-device.json"},
          {paths::CdiDirectory(root), "railhead-", ".json"},
          {paths::CdiDirectory(root), "railheadd-", ".json"},
          {paths::CdiRecords(root), "", ".json"},
          // What the parts tell of the node: health, leaves, reach, drains.
          {root.Path("/run/railhead"), "", ".json"},
          {root.Path("/var/lib/railhead"), "", ".json"}};
}

bool IsTemporaryIn(const Place& place, std::string_view name) {
  if (!name.ends_with(kTemporarySuffix)) return false;
  name.remove_suffix(kTemporarySuffix.size());
  return name.starts_with(place.prefix) && name.ends_with(place.suffix);
}

// Under its writer's lock, which goes with the process: false when that is at work. A writer
// that waits for the lock finds that the file is gone and makes another one (WriteAtomic).
Result<bool> RemoveAbandoned(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return errno == ENOENT ? Result<bool>(false) : FailSys(errno, "opening " + path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return false;
  struct stat there {};
  struct stat open {};
  const bool same = ::lstat(path.c_str(), &there) == 0 && ::fstat(fd.get(), &open) == 0 &&
                    there.st_ino == open.st_ino && there.st_dev == open.st_dev;
  return same ? RemoveFile(path) : false;
}

}  // namespace

void ReconcileHalfWritten(ReconcilePass& pass) {
  for (const Place& place : PlacesOf(pass.root)) {
    for (const std::string& name : NamesIn(pass, "half-written", place.directory)) {
      const std::string path = place.directory + "/" + name;
      if (IsTemporaryIn(place, name)) pass.Add("half-written", path, kKilled, RemoveAbandoned(path));
    }
  }
  // A socket's writer holds no lock, but has it renamed within milliseconds.
  const std::string socket = paths::BindSocket(pass.root);
  const std::string folder = socket.substr(0, socket.rfind('/') + 1);
  const std::string of_socket = socket + ".";
  for (const std::string& name : NamesIn(pass, "half-written", folder)) {
    const std::string path = folder + name;
    if (path.starts_with(of_socket) && IsOld(pass, path))
      pass.Add("half-written", path, kKilled, RemoveFile(path));
  }
}

}  // namespace railhead

#include "netns/ns/mount_propagation.h"

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
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

}  // namespace railhead

#include "deviceplugin/services/kubelet/other_instances.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "deviceplugin/services/kubelet/socket_name.h"
#include "deviceplugin/services/kubelet/socket_probe.h"
#include "netns/base/files.h"

namespace railhead::kubelet {
namespace {

bool HaveLeft(const std::set<std::string>& before, const std::set<std::string>& now) {
  return !std::ranges::includes(now, before);
}

// When the socket was made; nullopt when it is gone.
std::optional<std::pair<std::int64_t, std::int64_t>> MadeAt(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return std::make_pair(static_cast<std::int64_t>(status.st_mtim.tv_sec),
                        static_cast<std::int64_t>(status.st_mtim.tv_nsec));
}

}  // namespace

bool IsOther(const std::string& name, const std::string& own_name) {
  return IsPluginSocket(name) && ResourcePart(name) == ResourcePart(own_name) &&
         ProcessPart(name) != ProcessPart(own_name);
}

std::vector<OtherServer> OtherServers(const std::string& directory, const std::string& own_name) {
  std::vector<OtherServer> others;
  const auto own = MadeAt(directory + "/" + own_name);
  const auto names = ListDirectory(directory);
  if (!own || !names || !*names) return others;
  for (const std::string& name : **names) {
    if (name == own_name || !IsPluginSocket(name) || ResourcePart(name) != ResourcePart(own_name)) continue;
    std::string path = directory;
    path.append("/").append(name);
    const auto made = MadeAt(path);
    if (made && ProbeSocket(path) == 0) others.push_back({name, *made > *own});
  }
  return others;
}

OtherInstances::Changes OtherInstances::Update(const std::string& directory, const std::string& own_name,
                                               std::span<const std::string> passed) {
  std::set<std::string> newer;
  std::set<std::string> older;
  for (OtherServer& other : OtherServers(directory, own_name)) {
    known_.insert(other.name);
    (other.newer ? newer : older).insert(std::move(other.name));
  }
  Changes changes;
  if (!newer.empty()) changes.newer = *newer.begin();
  changes.newer_left = HaveLeft(newer_, newer);
  changes.older_left = HaveLeft(older_, older);
  for (const std::string& name : passed) {
    // A server that came since the last update is newer.
    if (known_.erase(name) == 0 && IsOther(name, own_name)) changes.newer_left = true;
  }
  newer_ = std::move(newer);
  older_ = std::move(older);
  return changes;
}

}  // namespace railhead::kubelet

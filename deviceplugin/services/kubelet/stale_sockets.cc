#include "deviceplugin/services/kubelet/stale_sockets.h"

#include <cerrno>

#include "deviceplugin/services/kubelet/socket_name.h"
#include "deviceplugin/services/kubelet/socket_probe.h"
#include "netns/base/files.h"

namespace railhead::kubelet {

std::vector<std::string> RemoveStaleSockets(const std::string& directory) {
  std::vector<std::string> removed;
  const auto names = ListDirectory(directory);
  if (!names || !*names) return removed;
  for (const std::string& name : **names) {
    std::string path = directory;
    path.append("/").append(name);
    if (IsPluginSocket(name) && ProbeSocket(path) == ECONNREFUSED && RemoveFile(path).value_or(false))
      removed.push_back(name);
  }
  return removed;
}

}  // namespace railhead::kubelet

#include "deviceplugin/services/kubelet/socket_identity.h"

#include <sys/stat.h>

namespace railhead::kubelet {

std::optional<SocketIdentity> IdentityOf(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
  return SocketIdentity{
      status.st_dev, status.st_ino,
      static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec};
}

}  // namespace railhead::kubelet

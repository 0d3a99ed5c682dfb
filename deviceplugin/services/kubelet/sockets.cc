#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "deviceplugin/services/kubelet/endpoint.h"
#include "deviceplugin/services/kubelet/registrar.h"
#include "netns/base/files.h"
#include "netns/base/hash.h"
#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

constexpr std::string_view kPrefix = "railhead-";
constexpr std::string_view kSuffix = ".sock";
static_assert(kMaxSocketPath == sizeof(sockaddr_un::sun_path) - 1);

// Short.
std::string Hash(std::string_view text) {
  std::array<char, 9> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), "%08x", Fnv1a32(text));
  return buffer.data();
}

// connect(2)'s errno: 0 when somebody listens, ECONNREFUSED when nobody does any more.
int Probe(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() > kMaxSocketPath) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(fd.get(), generic, sizeof address) == 0 ? 0 : errno;
}

// When the socket was made; nullopt when it is gone.
std::optional<std::pair<std::int64_t, std::int64_t>> MadeAt(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return std::make_pair(static_cast<std::int64_t>(status.st_mtim.tv_sec),
                        static_cast<std::int64_t>(status.st_mtim.tv_nsec));
}

// Of railhead-RESOURCE-PID-STARTED-N.sock: without N.
std::string_view ProcessPart(std::string_view name) {
  return name.substr(0, name.rfind('-'));
}

// "railhead-RESOURCE".
std::string_view ResourcePart(std::string_view name) {
  for (int part = 0; part < 3; ++part) name = name.substr(0, name.rfind('-'));
  return name;
}

bool IsOurs(std::string_view name) {
  return name.size() > kPrefix.size() + kSuffix.size() && name.substr(0, kPrefix.size()) == kPrefix &&
         name.substr(name.size() - kSuffix.size()) == kSuffix;
}

}  // namespace

std::optional<SocketIdentity> IdentityOf(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
  return SocketIdentity{
      status.st_dev, status.st_ino,
      static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec};
}

std::string SocketName(const std::string& directory, const std::string& resource, const std::string& tag,
                       int number) {
  std::string readable = resource;
  std::replace(readable.begin(), readable.end(), '/', '_');
  const std::string tail = "-" + tag + "-" + std::to_string(number) + std::string(kSuffix);
  const bool fits = directory.size() + 1 + kPrefix.size() + readable.size() + tail.size() <= kMaxSocketPath;
  return std::string(kPrefix) + (fits ? readable : Hash(resource)) + tail;
}

Result<void> CheckSocketPath(const std::string& directory, const std::string& resource,
                             const std::string& tag, const std::string& option) {
  constexpr int kManyServers = 9999;
  const std::string path = directory + "/" + SocketName(directory, resource, tag, kManyServers);
  if (path.size() <= kMaxSocketPath) return {};
  return Fail(ErrorCode::kInvalid,
              "the socket path " + path + " is longer than " + std::to_string(kMaxSocketPath) +
                  " bytes, which is all that Linux takes",
              "use a shorter " + option);
}

bool IsOther(const std::string& name, const std::string& own_name) {
  return IsOurs(name) && ResourcePart(name) == ResourcePart(own_name) &&
         ProcessPart(name) != ProcessPart(own_name);
}

std::vector<OtherServer> OtherServers(const std::string& directory, const std::string& own_name) {
  std::vector<OtherServer> others;
  const auto own = MadeAt(directory + "/" + own_name);
  const auto names = ListDirectory(directory);
  if (!own || !names || !*names) return others;
  for (const std::string& name : **names) {
    if (name == own_name || !IsOurs(name) || ResourcePart(name) != ResourcePart(own_name)) continue;
    std::string path = directory;
    path.append("/").append(name);
    const auto made = MadeAt(path);
    if (made && Probe(path) == 0) others.push_back({name, *made > *own});
  }
  return others;
}

std::vector<std::string> RemoveStaleSockets(const std::string& directory) {
  std::vector<std::string> removed;
  const auto names = ListDirectory(directory);
  if (!names || !*names) return removed;
  for (const std::string& name : **names) {
    std::string path = directory;
    path.append("/").append(name);
    if (IsOurs(name) && Probe(path) == ECONNREFUSED && RemoveFile(path).value_or(false))
      removed.push_back(name);
  }
  return removed;
}

}  // namespace railhead

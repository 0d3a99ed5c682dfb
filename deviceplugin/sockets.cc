#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "deviceplugin/registrar.h"
#include "netns/base/files.h"
#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

constexpr std::string_view kPrefix = "railhead-";
constexpr std::string_view kSuffix = ".sock";
constexpr std::size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;

// FNV-1a, 64 bits: short and the same in every process.
std::string Hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  std::array<char, 17> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), "%016llx", static_cast<unsigned long long>(hash));
  return buffer.data();
}

// Whether connect(2) is refused: the file is a socket that nobody listens on.
bool NobodyListens(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() > kMaxSocketPath) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return false;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(fd.get(), generic, sizeof address) != 0 && errno == ECONNREFUSED;
}

bool IsOurs(std::string_view name) {
  return name.size() > kPrefix.size() + kSuffix.size() && name.substr(0, kPrefix.size()) == kPrefix &&
         name.substr(name.size() - kSuffix.size()) == kSuffix;
}

}  // namespace

std::string SocketName(const std::string& directory, const std::string& resource, const std::string& tag,
                       int number) {
  std::string readable = resource;
  std::replace(readable.begin(), readable.end(), '/', '_');
  const std::string tail = "-" + tag + "-" + std::to_string(number) + std::string(kSuffix);
  const bool fits = directory.size() + 1 + kPrefix.size() + readable.size() + tail.size() <= kMaxSocketPath;
  return std::string(kPrefix) + (fits ? readable : Hash(resource)) + tail;
}

std::vector<std::string> RemoveStaleSockets(const std::string& directory) {
  std::vector<std::string> removed;
  const auto names = ListDirectory(directory);
  if (!names || !*names) return removed;
  for (const std::string& name : **names) {
    const std::string path = directory + "/" + name;
    if (IsOurs(name) && NobodyListens(path) && RemoveFile(path).value_or(false)) removed.push_back(name);
  }
  return removed;
}

}  // namespace railhead

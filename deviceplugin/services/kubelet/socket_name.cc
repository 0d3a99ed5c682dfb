#include "deviceplugin/services/kubelet/socket_name.h"

#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "netns/base/fnv.h"

namespace railhead::kubelet {
namespace {

constexpr std::string_view kPrefix = "railhead-";
constexpr std::string_view kSuffix = ".sock";
static_assert(kMaxSocketPath == sizeof(sockaddr_un::sun_path) - 1);

// Eight hexadecimal digits.
std::string Hash(std::string_view text) {
  std::array<char, 9> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), "%08x", Fnv1a32(text));
  return buffer.data();
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

Result<void> CheckSocketPath(const std::string& directory, const std::string& resource,
                             const std::string& tag) {
  constexpr int kManyServers = 9999;
  const std::string path = directory + "/" + SocketName(directory, resource, tag, kManyServers);
  if (path.size() <= kMaxSocketPath) return {};
  return Fail(ErrorCode::kInvalid,
              "the socket path " + path + " is longer than " + std::to_string(kMaxSocketPath) +
                  " bytes, the limit of Linux",
              "use a shorter --kubelet-dir");
}

bool IsPluginSocket(std::string_view name) {
  return name.size() > kPrefix.size() + kSuffix.size() && name.substr(0, kPrefix.size()) == kPrefix &&
         name.substr(name.size() - kSuffix.size()) == kSuffix;
}

std::string_view ProcessPart(std::string_view name) {
  return name.substr(0, name.rfind('-'));
}

std::string_view ResourcePart(std::string_view name) {
  for (int part = 0; part < 3; ++part) name = name.substr(0, name.rfind('-'));
  return name;
}

}  // namespace railhead::kubelet

#include "deviceplugin/support/http/http_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "netns/base/text.h"

namespace railhead::http {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

tl::unexpected<Error> RefuseAddress(const std::string& text, const std::string& why) {
  return Fail(ErrorCode::kInvalid, "the HTTP address '" + text + "' " + why,
              "give ADDRESS:PORT, for example 127.0.0.1:9917 or [::1]:9917; or unix:PATH");
}

std::optional<std::uint16_t> ParsePort(const std::string& text) {
  const auto port = ParseInt(text);
  if (!port || *port < 0 || *port > UINT16_MAX) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

template <typename Address>
HttpAddress Pack(const Address& address) {
  HttpAddress packed;
  std::memcpy(&packed.address, &address, sizeof address);
  packed.length = sizeof address;
  return packed;
}

Result<HttpAddress> PackSocket(const std::string& text, const std::string& path) {
  sockaddr_un address{};
  if (path.size() < 2 || path[0] != '/') return RefuseAddress(text, "has no absolute path");
  if (path.size() >= sizeof address.sun_path) return RefuseAddress(text, "has a path longer than 107 bytes");
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  HttpAddress packed = Pack(address);
  packed.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return packed;
}

}  // namespace

Result<HttpAddress> ParseHttpAddress(const std::string& text) {
  if (text.starts_with(kUnixPrefix)) return PackSocket(text, text.substr(kUnixPrefix.size()));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return RefuseAddress(text, "has no port");
  const auto port = ParsePort(text.substr(colon + 1));
  if (!port) return RefuseAddress(text, "has no port between 0 and 65535");
  const std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(*port);
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &address.sin6_addr) == 1)
      return Pack(address);
    return RefuseAddress(text, "names no IPv6 address");
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(*port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1) return Pack(address);
  return RefuseAddress(text, "names no IP address");
}

std::string ToString(const HttpAddress& address) {
  if (const std::string path = SocketPath(address); !path.empty()) return std::string(kUnixPrefix) + path;
  std::array<char, INET6_ADDRSTRLEN> host{};
  if (address.address.ss_family == AF_INET6) {
    sockaddr_in6 packed{};
    std::memcpy(&packed, &address.address, sizeof packed);
    ::inet_ntop(AF_INET6, &packed.sin6_addr, host.data(), host.size());
    return std::string("[").append(host.data()).append("]:").append(std::to_string(ntohs(packed.sin6_port)));
  }
  sockaddr_in packed{};
  std::memcpy(&packed, &address.address, sizeof packed);
  ::inet_ntop(AF_INET, &packed.sin_addr, host.data(), host.size());
  return std::string(host.data()).append(":").append(std::to_string(ntohs(packed.sin_port)));
}

std::string SocketPath(const HttpAddress& address) {
  if (address.address.ss_family != AF_UNIX) return {};
  sockaddr_un packed{};
  std::memcpy(&packed, &address.address, sizeof packed);
  return packed.sun_path;
}

}  // namespace railhead::http

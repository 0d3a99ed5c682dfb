#include "tests/support/metrics/http_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>

#include "deviceplugin/support/http/http_address.h"

namespace railhead::testing {

UniqueFd Connect(const std::string& address) {
  const auto parsed = http::ParseHttpAddress(address);
  if (!parsed) return {};
  UniqueFd fd(::socket(parsed->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* raw = reinterpret_cast<const sockaddr*>(&parsed->address);
  if (::connect(fd.get(), raw, parsed->length) != 0) return {};
  return fd;
}

void Write(const UniqueFd& connection, const std::string& bytes) {
  (void)::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

std::optional<HttpAnswer> ReadAnswer(const UniqueFd& connection) {
  constexpr int kMinute = 60'000;
  std::string all;
  std::array<char, 4096> buffer{};
  while (true) {
    pollfd waiting{connection.get(), POLLIN, 0};
    if (::poll(&waiting, 1, kMinute) <= 0) return std::nullopt;
    const ssize_t n = ::recv(connection.get(), buffer.data(), buffer.size(), 0);
    if (n <= 0) break;
    all.append(buffer.data(), static_cast<std::size_t>(n));
  }
  const std::size_t end = all.find("\r\n\r\n");
  if (end == std::string::npos || all.rfind("HTTP/1.1 ", 0) != 0) return std::nullopt;
  return HttpAnswer{std::atoi(all.c_str() + 9), all.substr(0, end), all.substr(end + 4)};
}

std::optional<HttpAnswer> Get(const std::string& address, const std::string& path,
                              const std::string& headers) {
  const UniqueFd connection = Connect(address);
  if (!connection.valid()) return std::nullopt;
  Write(connection, "GET " + path + " HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n");
  return ReadAnswer(connection);
}

}  // namespace railhead::testing

#include "tests/support/metrics/notify_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "netns/base/text.h"

namespace railhead::testing {

using Clock = std::chrono::steady_clock;

NotifySocket::NotifySocket(const std::string& name)
    : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), std::min(name.size(), sizeof address.sun_path));
  if (name[0] == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) socket_.Reset();
}

std::vector<std::string> NotifySocket::Next() {
  constexpr int kMinute = 60'000;
  pollfd waiting{socket_.get(), POLLIN, 0};
  if (::poll(&waiting, 1, kMinute) <= 0) return {};
  std::array<char, 4096> buffer{};
  const ssize_t n = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  return n <= 0 ? std::vector<std::string>{}
                : Split(std::string_view(buffer.data(), static_cast<std::size_t>(n)), '\n');
}

std::vector<std::string> NotifySocket::Await(const std::string& line) {
  for (const auto end = Clock::now() + std::chrono::minutes(1); Clock::now() < end;) {
    auto message = Next();
    if (message.empty() || std::find(message.begin(), message.end(), line) != message.end()) return message;
  }
  return {};
}

}  // namespace railhead::testing

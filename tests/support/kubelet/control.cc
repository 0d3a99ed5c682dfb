#include "tests/support/kubelet/control.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <string_view>
#include <thread>

#include "netns/base/files.h"
#include "netns/base/unique_fd.h"

namespace railhead::testing {
namespace {

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Fail(ErrorCode::kInvalid, "the socket path " + path + " is too long", "use a shorter --dir");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Reads until the peer shuts down its side.
Result<std::string> ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailSys(errno, "reading from the control socket");
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

Result<void> SendAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailSys(errno, "writing to the control socket");
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  ::shutdown(fd, SHUT_WR);
  return {};
}

}  // namespace

Result<void> ServeControl(const std::string& path, int stop_fd,
                          const std::function<std::string(const std::string&)>& answer) {
  const sockaddr_un address = RH_TRY(AddressOf(path));
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.valid()) return FailSys(errno, "making the control socket");
  RH_TRY(RemoveFile(path));
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(listener.get(), generic, sizeof address) != 0 || ::listen(listener.get(), 16) != 0) {
    return FailSys(errno, "serving " + path);
  }
  std::list<std::thread> threads;
  std::array<pollfd, 2> fds{{{listener.get(), POLLIN, 0}, {stop_fd, POLLIN, 0}}};
  while (::poll(fds.data(), fds.size(), -1) >= 0 || errno == EINTR) {
    if ((fds[1].revents & POLLIN) != 0) break;
    if ((fds[0].revents & POLLIN) == 0) continue;
    const int fd = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    threads.emplace_back([fd, &answer] {
      const UniqueFd connection(fd);
      const auto request = ReadAll(connection.get());
      if (request) (void)SendAll(connection.get(), answer(*request));
    });
  }
  for (std::thread& thread : threads) thread.join();
  (void)RemoveFile(path);
  return {};
}

Result<std::string> AskControl(const std::string& path, const std::string& request) {
  const sockaddr_un address = RH_TRY(AddressOf(path));
  const UniqueFd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!connection.valid()) return FailSys(errno, "making a socket");
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Fail(Wrap(SysError(errno, "connecting to " + path), "is `kubelet-standin serve` running"));
  }
  RH_TRY(SendAll(connection.get(), request));
  return ReadAll(connection.get());
}

}  // namespace railhead::testing

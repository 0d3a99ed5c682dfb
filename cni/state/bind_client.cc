#include "cni/state/bind_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "cni/state/paths.h"
#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLimit{10};

tl::unexpected<Error> NoAnswer(const std::string& path, const std::string& why) {
  return Fail(ErrorCode::kBusy, "asking railheadd at " + path + " for the devices of the pod's slots: " + why,
              "a pool with \"binding\": \"late\" needs railheadd on the node: see its log");
}

Result<UniqueFd> Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return NoAnswer(path, "the path is too long for a socket");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return FailSys(errno, "opening a socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return NoAnswer(path, std::strerror(errno));  // NOLINT(concurrency-mt-unsafe): one thread
  // The answer decides which device ADD moves.
  if (!IsPeerTrusted(fd.get())) return NoAnswer(path, "the process that listens there is not root's");
  return fd;
}

bool Await(int fd, short events, Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  pollfd polled{fd, events, 0};
  return ::poll(&polled, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) > 0;
}

Result<void> SendLine(const std::string& path, int fd, std::string_view text, Clock::time_point until) {
  while (!text.empty()) {
    if (!Await(fd, POLLOUT, until)) return NoAnswer(path, "it does not read");
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return NoAnswer(path, "it has closed the connection");
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<std::string> ReadLine(const std::string& path, int fd, Clock::time_point until) {
  std::string line;
  std::array<char, 4096> buffer{};
  while (line.find('\n') == std::string::npos) {
    if (!Await(fd, POLLIN, until))
      return NoAnswer(path, "no answer within " + std::to_string(kLimit.count()) + " s");
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) return NoAnswer(path, "it has closed the connection without an answer");
    line.append(buffer.data(), static_cast<std::size_t>(n));
    if (line.size() > kMaxBindLine) return NoAnswer(path, "its answer has no end");
  }
  return line.substr(0, line.find('\n'));
}

}  // namespace

Result<Bindings> BindSlots(const Root& root, const BindRequest& request) {
  const std::string path = paths::BindSocket(root);
  const auto until = Clock::now() + kLimit;
  const UniqueFd fd = RH_TRY(Connect(path));
  const std::string line = RH_TRY(FormatBindRequest(request));
  RH_TRY(SendLine(path, fd.get(), line, until));
  return ParseBindAnswer(RH_TRY(ReadLine(path, fd.get(), until)), request);
}

}  // namespace railhead

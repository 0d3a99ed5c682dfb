#include "deviceplugin/binding/bind_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "cni/state/paths.h"
#include "netns/base/files.h"

namespace railhead {
namespace {

using Clock = std::chrono::steady_clock;

// Whoever connects writes at once; one that does not must not keep others waiting.
constexpr std::chrono::seconds kPatience{2};
constexpr int kBacklog = 64;

bool IsRoot(int connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  const bool known = ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
  return known && (peer.uid == 0 || peer.uid == ::geteuid());
}

bool Await(int fd, short events, Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  pollfd polled{fd, events, 0};
  return ::poll(&polled, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) > 0;
}

// nullopt: it does not say anything, or without end.
std::optional<std::string> ReadLine(int fd, Clock::time_point until) {
  std::string line;
  std::array<char, 4096> buffer{};
  while (line.find('\n') == std::string::npos) {
    if (line.size() > kMaxBindLine || !Await(fd, POLLIN, until)) return std::nullopt;
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) return std::nullopt;
    line.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return line.substr(0, line.find('\n'));
}

void Send(int fd, std::string_view text, Clock::time_point until) {
  while (!text.empty() && Await(fd, POLLOUT, until)) {
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Made under another name and renamed: the path is never without a socket, and the socket
// of a daemon that was killed is no obstacle.
Result<UniqueFd> Listen(const std::string& path) {
  const std::string temporary = path + "." + std::to_string(::getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (temporary.size() >= sizeof address.sun_path)
    return Fail(ErrorCode::kInvalid, "the path " + temporary + " is too long for a socket");
  std::memcpy(address.sun_path, temporary.c_str(), temporary.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return FailSys(errno, "opening a socket");
  (void)::unlink(temporary.c_str());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return FailSys(errno, "making the socket " + temporary);
  const bool ready = ::chmod(temporary.c_str(), 0600) == 0 && ::listen(fd.get(), kBacklog) == 0 &&
                     ::rename(temporary.c_str(), path.c_str()) == 0;
  if (ready) return fd;
  const int error = errno;
  (void)::unlink(temporary.c_str());
  return FailSys(error, "listening at " + path);
}

}  // namespace

Result<std::unique_ptr<BindServer>> BindServer::Start(const Root& root, Answer answer, Report report) {
  const std::string path = paths::BindSocket(root);
  RH_TRY(MakeDirectories(path.substr(0, path.rfind('/'))));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return FailSys(errno, "making an eventfd");
  UniqueFd listener = RH_TRY(Listen(path));
  return std::unique_ptr<BindServer>(
      new BindServer(path, std::move(listener), std::move(wake), std::move(answer), std::move(report)));
}

BindServer::BindServer(std::string path, UniqueFd listener, UniqueFd wake, Answer answer, Report report)
    : path_(std::move(path)),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      answer_(std::move(answer)),
      report_(std::move(report)),
      thread_([this] { Loop(); }) {}

BindServer::~BindServer() {
  Stop();
  thread_.join();
}

void BindServer::Stop() {
  stopping_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void BindServer::Loop() {
  while (!stopping_) {
    std::array<pollfd, 2> fds{{{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (stopping_ || fds[0].revents == 0) continue;
    const UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.valid()) Serve(connection.get());
  }
}

void BindServer::Serve(int connection) const {
  if (!IsRoot(connection)) return;
  const auto until = Clock::now() + kPatience;
  const auto line = ReadLine(connection, until);
  if (!line) return;
  const auto request = ParseBindRequest(*line);
  const Result<Bindings> answer = request ? answer_(*request) : Fail(request.error());
  Send(connection, FormatBindAnswer(answer), Clock::now() + kPatience);
  report_(request ? *request : BindRequest{}, answer);
}

}  // namespace railhead

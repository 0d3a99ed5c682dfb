#include "deviceplugin/services/late_binding/bind_server.h"

#include <poll.h>
#include <sys/inotify.h>
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
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cni/state/bind_protocol.h"
#include "cni/state/paths.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"

namespace railhead::late_binding {
namespace {

using Clock = std::chrono::steady_clock;

// A client writes its request at once. A client that does not must not delay others.
constexpr std::chrono::seconds kPatience{2};
constexpr std::size_t kMostPeers = 64;  // at once; further ones wait in the backlog
// The pause when no descriptor is free for the next connection.
constexpr std::chrono::milliseconds kRetryPause{100};
constexpr std::chrono::milliseconds kLong{3'600'000};
constexpr int kBacklog = 64;
// One that takes longer counts as stuck.
constexpr std::chrono::seconds kLongestBinding{60};
// How often a server without the path checks whether it must reclaim it: a killed daemon causes no event.
constexpr std::chrono::milliseconds kPathCheckInterval{1000};

bool Await(int fd, short events, Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  pollfd polled{fd, events, 0};
  return ::poll(&polled, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) > 0;
}

void Send(int fd, std::string_view text, Clock::time_point until) {
  while (!text.empty() && Await(fd, POLLOUT, until)) {
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return Fail(ErrorCode::kInvalid, "the path " + path + " is too long for a socket");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// Other failures, for example of a full backlog, do not show that the listener has ended.
bool NobodyListens(const std::string& path) {
  const auto address = AddressOf(path);
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!address || !fd.valid()) return false;
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 &&
         (errno == ECONNREFUSED || errno == ENOENT);
}

void Drain(int fd) {
  std::array<char, 4096> buffer;
  while (::read(fd, buffer.data(), buffer.size()) > 0) {
  }
}

std::optional<std::pair<dev_t, ino_t>> FileAt(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
  return std::make_pair(status.st_dev, status.st_ino);
}

}  // namespace

Result<std::unique_ptr<BindServer>> BindServer::Listen(const Root& root, BindRequests& requests) {
  const std::string path = paths::BindSocket(root);
  RH_TRY(MakeStateFolderOf(root, path));
  UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const std::string directory = path.substr(0, path.rfind('/'));
  if (!watch.valid() || ::inotify_add_watch(watch.get(), directory.c_str(), IN_MOVED_TO | IN_DELETE) < 0)
    return FailSys(errno, "watching the directory " + directory);
  Listener listener = RH_TRY(OpenListener(root));
  return std::unique_ptr<BindServer>(new BindServer(root, std::move(listener), std::move(watch), requests));
}

// Makes the socket under another name and renames it. So the path always has a socket, and the socket of a
// killed daemon is not in the way.
Result<BindServer::Listener> BindServer::OpenListener(const Root& root) {
  const std::string path = paths::BindSocket(root);
  const FileLock lock = RH_TRY(FileLock::Acquire(paths::BindSocketLock(root), kPatience));
  const std::string temporary = path + "." + std::to_string(::getpid());
  const sockaddr_un address = RH_TRY(AddressOf(temporary));
  Listener listener{UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), {}};
  if (!listener.fd.valid()) return FailSys(errno, "opening a socket");
  (void)::unlink(temporary.c_str());
  // Sets the mode before bind(), which passes the socket's mode on to the name (net/unix/af_unix.c,
  // unix_bind_bsd). A chmod of the name could hit a file that another process has put there.
  if (::fchmod(listener.fd.get(), 0600) != 0) return FailSys(errno, "setting the mode of a socket");
  if (::bind(listener.fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return FailSys(errno, "making the socket " + temporary);
  const auto file = FileAt(temporary);
  if (file) listener.file = *file;
  const bool ready =
      file && ::listen(listener.fd.get(), kBacklog) == 0 && ::rename(temporary.c_str(), path.c_str()) == 0;
  if (ready) return listener;
  const int error = errno;
  (void)::unlink(temporary.c_str());
  return FailSys(error, "listening at " + path);
}

BindServer::BindServer(Root root, Listener listener, UniqueFd watch, BindRequests& requests)
    : root_(std::move(root)),
      path_(paths::BindSocket(root_)),
      listener_(std::move(listener)),
      watch_(std::move(watch)),
      requests_(requests) {}

void BindServer::Run(Worker& worker) {
  while (!worker.StopRequested()) Step(worker);
  peers_.clear();
  for (Served& served : served_) served.thread.join();
  served_.clear();
}

void BindServer::Step(Worker& worker) {
  const bool accepts = !pausing_ && peers_.size() + served_.size() < kMostPeers;
  std::vector<pollfd> fds{{watch_.get(), POLLIN, 0}, {accepts ? listener_.fd.get() : -1, POLLIN, 0}};
  const std::size_t first = fds.size();
  auto until = Clock::now() + (pausing_ ? kRetryPause : HasPath() ? kLong : kPathCheckInterval);
  for (const Peer& peer : peers_) {
    fds.push_back({peer.connection.get(), POLLIN, 0});
    until = std::min(until, peer.until);
  }
  worker.Wait(until, fds);
  if (worker.StopRequested()) return;
  Reap();
  if ((fds[0].revents & POLLIN) != 0) Drain(watch_.get());
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (fds[first + i].revents != 0 && HasFinished(&peers_[i], worker)) peers_[i].connection.Reset();
  }
  std::erase_if(peers_,
                [](const Peer& peer) { return !peer.connection.valid() || peer.until <= Clock::now(); });
  pausing_ = (fds[1].revents & POLLIN) != 0 && !Accept();
  if (!HasPath()) ReclaimPath();
}

void BindServer::Reap() {
  for (Served& served : served_) {
    if (served.done) served.thread.join();
  }
  served_.remove_if([](const Served& served) { return !served.thread.joinable(); });
}

// false: no descriptor is free, and an immediate retry would spin.
bool BindServer::Accept() {
  UniqueFd connection(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection.valid()) return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
  if (IsPeerTrusted(connection.get()))
    peers_.push_back({std::move(connection), {}, Clock::now() + kPatience});
  return true;
}

// Whether the connection is done: the request is complete, too long, or will never be complete.
bool BindServer::HasFinished(Peer* peer, Worker& worker) {
  std::array<char, 4096> buffer{};
  const ssize_t n = ::recv(peer->connection.get(), buffer.data(), buffer.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n <= 0) return true;
  peer->received.append(buffer.data(), static_cast<std::size_t>(n));
  const auto end = peer->received.find('\n');
  if (end == std::string::npos) return peer->received.size() > kMaxBindLine;
  ServeAside(std::move(peer->connection), peer->received.substr(0, end), worker);
  return true;
}

bool BindServer::HasPath() const {
  return FileAt(path_) == listener_.file;
}

// If two servers do this at the same time, one ends up with the path and the other one watches. After a
// failure the next check tries again.
void BindServer::ReclaimPath() {
  if (!NobodyListens(path_)) return;
  if (auto listener = OpenListener(root_)) listener_ = *std::move(listener);
}

// If no memory is left for a thread, this thread answers.
void BindServer::ServeAside(UniqueFd connection, const std::string& line, Worker& worker) {
  Served& served = served_.emplace_back();
  const auto shared = std::make_shared<UniqueFd>(std::move(connection));
  try {
    served.thread = std::thread([this, shared, line, &served, &worker] {
      {
        const Worker::Aside answering(worker, kLongestBinding, "a request to bind slots");
        Serve(shared->get(), line);
      }
      shared->Reset();
      served.done = true;
      worker.Wake();
    });
  } catch (const std::system_error&) {
    served_.pop_back();
    Serve(shared->get(), line);
  }
}

void BindServer::Serve(int connection, const std::string& line) const {
  const auto request = ParseBindRequest(line);
  const Result<Bindings> answer = request ? requests_.Bind(*request) : Fail(request.error());
  Send(connection, FormatBindAnswer(answer), Clock::now() + kPatience);
  requests_.LogBinding(request ? *request : BindRequest{}, answer);
}

}  // namespace railhead::late_binding

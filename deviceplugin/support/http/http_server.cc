#include "deviceplugin/support/http/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "netns/base/text.h"

namespace railhead::http {
namespace {

// For the request and its answer together: both are small, and the other side is near.
constexpr std::chrono::seconds kPatience{5};
// For a slow answer. Prometheus waits ten seconds by default.
constexpr std::chrono::seconds kSlowPatience{30};
// For the other side to close, so that a reset does not lose the answer.
constexpr std::chrono::seconds kFarewell{1};
// Limit for bytes that arrive in that time. A client that sends more loses the answer.
constexpr std::size_t kMostThrownAway = std::size_t{1} << 20;
constexpr std::chrono::seconds kAddressAgain{1};
constexpr std::chrono::milliseconds kAfterPollError{100};
constexpr int kBacklog = 16;

constexpr std::string_view kUnixPrefix = "unix:";

// "": an IP address.
std::string SocketPath(const HttpAddress& address) {
  if (address.address.ss_family != AF_UNIX) return {};
  sockaddr_un packed{};
  std::memcpy(&packed, &address.address, sizeof packed);
  return packed.sun_path;
}

bool WouldWait(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpAddress& address, Handler handler,
                                                      Report report, IsSlow is_slow) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return FailSys(errno, "making an eventfd for HTTP");
  return std::unique_ptr<HttpServer>(
      new HttpServer(address, std::move(handler), std::move(report), std::move(is_slow), std::move(wake)));
}

HttpServer::HttpServer(const HttpAddress& address, Handler handler, Report report, IsSlow is_slow,
                       UniqueFd wake)
    : address_(address),
      handler_(std::move(handler)),
      report_(std::move(report)),
      is_slow_(std::move(is_slow)),
      wake_(std::move(wake)),
      slow_(handler_, [this] { Wake(); }),
      next_attempt_(Clock::now()),
      thread_([this] { Loop(); }) {}

HttpServer::~HttpServer() {
  Stop();
  thread_.join();
}

void HttpServer::SetEnabled(bool enabled) {
  if (enabled_.exchange(enabled) != enabled) Wake();
}

void HttpServer::Stop() {
  stopping_ = true;
  slow_.Stop();
  Wake();
}

void HttpServer::Wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void HttpServer::Loop() {
  connections_.reserve(kMostConnections);
  while (!stopping_) {
    KeepAddress();
    WaitForWork();
  }
}

void HttpServer::KeepAddress() {
  if (!enabled_) {
    listener_.Reset();
    last_error_.clear();
    next_attempt_ = Clock::now();
    return;
  }
  if (listener_.valid() || Clock::now() < next_attempt_) return;
  next_attempt_ = Clock::now() + kAddressAgain;
  const auto listening = Listen();
  if (listening) {
    last_error_.clear();
    report_(listening);
  } else if (std::exchange(last_error_, listening.error().message) != listening.error().message) {
    report_(listening);
  }
}

Result<std::string> HttpServer::Listen() {
  const std::string what = "serving HTTP at " + ToString(address_);
  UniqueFd fd(::socket(address_.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return FailSys(errno, what);
  const std::string path = SocketPath(address_);
  if (!path.empty()) (void)::unlink(path.c_str());
  const int yes = 1;
  // Connections that the last process left behind do not keep the address.
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const auto* address = reinterpret_cast<const sockaddr*>(&address_.address);
  if (::bind(fd.get(), address, address_.length) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    Error error = SysError(errno, what);
    error.hint = error.sys_errno == EADDRINUSE
                     ? "another process has it; it is taken when it is free (or give another --http-address)"
                     : "give another --http-address, or \"\" for none";
    if (!path.empty()) error.hint = "give another --http-socket, in a directory that exists";
    return Fail(std::move(error));
  }
  HttpAddress taken;
  taken.length = sizeof taken.address;
  (void)::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&taken.address), &taken.length);
  listener_ = std::move(fd);
  address_ = taken;
  return ToString(address_);
}

void HttpServer::WaitForWork() {
  std::array<pollfd, kMostConnections + 2> fds{};
  fds[0] = {wake_.get(), POLLIN, 0};
  fds[1] = {listener_.get(), POLLIN, 0};  // -1 is ignored
  auto until = Clock::time_point::max();
  if (!listener_.valid() && enabled_) until = next_attempt_;
  std::size_t count = 2;
  for (const Connection& connection : connections_) {
    const bool sending = !connection.out.empty() && !connection.over;
    const int events = connection.ticket ? 0 : sending ? POLLOUT : POLLIN;
    fds[count++] = {connection.fd.get(), static_cast<short>(events), 0};
    until = std::min(until, connection.deadline);
  }
  int limit = -1;
  if (until != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    limit = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }
  if (::poll(fds.data(), count, limit) < 0 && errno != EINTR) {
    // The kernel has no memory for it. The next attempt must not follow at once.
    std::this_thread::sleep_for(kAfterPollError);
    return;
  }
  if (fds[0].revents != 0) {
    std::uint64_t woken = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &woken, sizeof woken);
    TakeSlowAnswers();
  }
  const auto now = Clock::now();
  std::size_t slot = 2;
  std::erase_if(connections_, [&](Connection& connection) {
    const bool ready = fds[slot++].revents != 0;
    return (ready && !Work(&connection)) || now >= connection.deadline;
  });
  if (fds[1].revents != 0) Accept();
}

void HttpServer::Accept() {
  UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) {
    // Without a descriptor for it the connection would stay, and poll() would not wait.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      listener_.Reset();
      next_attempt_ = Clock::now() + kAddressAgain;
    }
    return;
  }
  if (connections_.size() == kMostConnections) {
    connections_.erase(std::ranges::min_element(
        connections_, [](const auto& a, const auto& b) { return a.deadline < b.deadline; }));
  }
  Connection connection;
  connection.fd = std::move(fd);
  connection.deadline = Clock::now() + kPatience;
  connections_.push_back(std::move(connection));
}

bool HttpServer::Work(Connection* connection) {
  if (connection->ticket) return false;  // the client has gone
  if (connection->over) {
    // Drops all input until the end.
    std::array<char, 1024> rest{};
    const ssize_t n = ::recv(connection->fd.get(), rest.data(), rest.size(), 0);
    if (n <= 0) return n < 0 && WouldWait(errno);
    connection->thrown_away += static_cast<std::size_t>(n);
    return connection->thrown_away < kMostThrownAway;
  }
  if (connection->out.empty() && !Receive(connection)) return false;
  return connection->out.empty() || Send(connection);
}

bool HttpServer::Receive(Connection* connection) {
  std::array<char, 2048> buffer{};
  const ssize_t n = ::recv(connection->fd.get(), buffer.data(), buffer.size(), 0);
  if (n < 0) return WouldWait(errno);
  if (n == 0) return false;
  connection->in.append(buffer.data(), static_cast<std::size_t>(n));
  const HttpParsed parsed = ParseHttpRequest(connection->in);
  if (parsed.NeedsMore()) return true;
  Answer(parsed, connection);
  return true;
}

void HttpServer::Answer(const HttpParsed& parsed, Connection* connection) {
  const auto refuse = [&](int status, const char* why) {
    HttpResponse refusal;
    refusal.status = status;
    refusal.body = why;
    connection->out = FormatHttpResponse(refusal, true);
  };
  if (parsed.refuse) return refuse(*parsed.refuse, "this server does not understand the request\n");
  const HttpRequest& request = *parsed.request;
  if (request.method != "GET" && request.method != "HEAD") return refuse(405, "GET and HEAD only\n");
  connection->with_body = request.method == "GET";
  if (is_slow_ == nullptr || !is_slow_(request)) {
    connection->out = FormatHttpResponse(handler_(request), connection->with_body);
    return;
  }
  connection->ticket = slow_.Submit(request);
  if (!connection->ticket)
    return refuse(503, "answers to earlier requests for this page are still being made\n");
  connection->deadline = Clock::now() + kSlowPatience;
}

void HttpServer::TakeSlowAnswers() {
  while (const auto answer = slow_.Take()) {
    const auto asked = std::ranges::find(connections_, answer->first, &Connection::ticket);
    if (asked == connections_.end()) continue;  // it did not wait
    asked->ticket.reset();
    asked->out = FormatHttpResponse(answer->second, asked->with_body);
    asked->deadline = Clock::now() + kPatience;
  }
}

bool HttpServer::Send(Connection* connection) {
  while (connection->sent < connection->out.size()) {
    const ssize_t n = ::send(connection->fd.get(), connection->out.data() + connection->sent,
                             connection->out.size() - connection->sent, MSG_NOSIGNAL);
    if (n < 0) return WouldWait(errno);
    connection->sent += static_cast<std::size_t>(n);
  }
  (void)::shutdown(connection->fd.get(), SHUT_WR);
  connection->out.clear();
  connection->out.shrink_to_fit();
  connection->over = true;
  connection->deadline = std::min(connection->deadline, Clock::now() + kFarewell);
  return true;
}

namespace {

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

BackgroundQueue::~BackgroundQueue() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

std::optional<BackgroundQueue::Ticket> BackgroundQueue::Submit(HttpRequest request) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || waiting_.size() + (busy_ ? 1 : 0) >= kMostWaiting) return std::nullopt;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { Loop(); });
    } catch (const std::system_error&) {
      return std::nullopt;  // the machine has no thread left
    }
    ended_ = false;
  }
  waiting_.emplace_back(++last_, std::move(request));
  changed_.notify_all();
  return last_;
}

void BackgroundQueue::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (stopped_) break;
    const auto [ticket, request] = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    HttpResponse response = answer_(request);
    lock.lock();
    busy_ = false;
    if (stopped_) break;
    done_.emplace_back(ticket, std::move(response));
    ready_();
  }
  ended_ = true;
  changed_.notify_all();
}

std::optional<std::pair<BackgroundQueue::Ticket, HttpResponse>> BackgroundQueue::Take() {
  const std::lock_guard lock(mutex_);
  if (done_.empty()) return std::nullopt;
  auto first = std::move(done_.front());
  done_.pop_front();
  return first;
}

void BackgroundQueue::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool BackgroundQueue::AwaitEnd(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return ended_; });
}

}  // namespace railhead::http

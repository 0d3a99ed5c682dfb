#include "deviceplugin/support/http/http_server.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

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
constexpr int kBacklog = 16;

bool WouldWait(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

HttpServer::HttpServer(Options options, Handler handler, Report report)
    : name_(options.name),
      address_(options.address),
      is_slow_(std::move(options.is_slow)),
      from_(options.from),
      left_(options.left),
      handler_(std::move(handler)),
      report_(std::move(report)) {}

Result<void> HttpServer::Run(Worker& worker) {
  slow_.emplace(handler_, worker);
  if (left_ != nullptr) left_->Subscribe(worker);
  if (from_ != nullptr) from_->Subscribe(worker);
  while (from_ != nullptr && !*from_->Get() && !worker.StopRequested()) worker.Wait(Clock::time_point::max());
  connections_.reserve(kMostConnections);
  while (!worker.StopRequested()) {
    KeepAddress();
    WaitForWork(worker);
  }
  slow_.reset();
  return {};
}

void HttpServer::KeepAddress() {
  if (IsLeft()) {
    listener_.Reset();
    failure_.Clear();
    next_attempt_ = Clock::now();
    return;
  }
  if (listener_.valid() || Clock::now() < next_attempt_) return;
  next_attempt_ = Clock::now() + kAddressAgain;
  const auto listening = Listen();
  if (failure_.IsNew(listening) || listening) report_(listening);
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

void HttpServer::WaitForWork(Worker& worker) {
  std::vector<pollfd> fds{{listener_.get(), POLLIN, 0}};  // -1 is ignored
  auto until = Clock::time_point::max();
  if (!listener_.valid() && !IsLeft()) until = next_attempt_;
  for (const Connection& connection : connections_) {
    const bool sending = !connection.out.empty() && !connection.over;
    const int events = connection.ticket ? 0 : sending ? POLLOUT : POLLIN;
    fds.push_back({connection.fd.get(), static_cast<short>(events), 0});
    until = std::min(until, connection.deadline);
  }
  if (worker.Wait(until, fds)) TakeSlowAnswers();
  const auto now = Clock::now();
  std::size_t slot = 1;
  std::erase_if(connections_, [&](Connection& connection) {
    const bool ready = fds[slot++].revents != 0;
    return (ready && !Work(&connection)) || now >= connection.deadline;
  });
  if (fds[0].revents != 0) Accept();
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
  connection->ticket = slow_->Submit(request);
  if (!connection->ticket)
    return refuse(503, "answers to earlier requests for this page are still being made\n");
  connection->deadline = Clock::now() + kSlowPatience;
}

void HttpServer::TakeSlowAnswers() {
  while (const auto answer = slow_->Take()) {
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

}  // namespace railhead::http

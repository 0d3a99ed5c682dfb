#include "deviceplugin/support/http/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "deviceplugin/support/http/name_lookup.h"
#include "deviceplugin/support/http/tls_context.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"

namespace railhead::http {
namespace {

using Clock = std::chrono::steady_clock;

// Waits until `events` happen. Errors: kTimeout at the deadline.
Result<void> Wait(int fd, short events, Deadline deadline, const std::string& what) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waited{fd, events, 0};
    const int ready = left.count() < 0 ? 0 : ::poll(&waited, 1, static_cast<int>(left.count()) + 1);
    if (ready > 0) return {};
    if (ready == 0) return Fail(ErrorCode::kTimeout, what + ": no answer in time");
    if (errno != EINTR) return FailSys(errno, what);
  }
}

Error SocketFailure(int sys_errno, const std::string& what) {
  Error error = SysError(sys_errno, what);
  error.code = sys_errno == ETIMEDOUT ? ErrorCode::kTimeout : ErrorCode::kUnavailable;
  return error;
}

Result<UniqueFd> ConnectTo(const SocketAddress& to, Deadline deadline, const std::string& what) {
  UniqueFd fd(::socket(to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Fail(SocketFailure(errno, what));
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // Keeps routers and firewalls from dropping the connection while it is silent between two renewals.
  const int idle_seconds = 20;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof(idle_seconds));
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_KEEPINTVL, &idle_seconds, sizeof(idle_seconds));
  if (::connect(fd.get(), to.get(), to.length) != 0) {
    if (errno != EINPROGRESS) return Fail(SocketFailure(errno, what));
    RH_TRY(Wait(fd.get(), POLLOUT, deadline, what));
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Fail(SocketFailure(error, what));
  }
  return fd;
}

Result<UniqueFd> ConnectToAny(const HttpEndpoint& endpoint, Deadline deadline) {
  const std::string what = "connecting to " + endpoint.ToString();
  const auto addresses = RH_TRY_WRAP(LookUp(endpoint.host, endpoint.port, deadline), what);
  Error last{ErrorCode::kUnavailable, what + ": the name has no address", "", 0};
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto share = (deadline - Clock::now()) / static_cast<int>(addresses.size() - i);
    auto fd = ConnectTo(addresses[i], Clock::now() + share, what);
    if (fd) return fd;
    last = std::move(fd.error());
  }
  return Fail(std::move(last));
}

bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
         c == '_' || c == ':';
}

bool IsPathCharacter(char c) {
  return c > ' ' && c < 0x7f && c != '?' && c != '#';
}

Error BadEndpoint(const std::string& url, const std::string& why) {
  return {ErrorCode::kInvalid, "'" + url + "' is not an endpoint: " + why,
          "write https://HOST:PORT or http://HOST:PORT", 0};
}

}  // namespace

std::string HttpEndpoint::Authority() const {
  if (host.starts_with('/')) return "localhost";
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + port;
}

std::string HttpEndpoint::ToString() const {
  if (host.starts_with('/')) return "unix:" + host;
  return (tls ? "https://" : "http://") + Authority() + path;
}

Result<HttpEndpoint> ParseHttpEndpoint(const std::string& url) {
  HttpEndpoint endpoint;
  std::string rest;
  if (url.starts_with("https://")) {
    endpoint.tls = true;
    rest = url.substr(8);
  } else if (url.starts_with("http://")) {
    rest = url.substr(7);
  } else {
    return Fail(BadEndpoint(url, "it begins with neither https:// nor http://"));
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  endpoint.path = rest.substr(slash);
  while (endpoint.path.ends_with('/')) endpoint.path.pop_back();
  std::string authority = rest.substr(0, slash);
  const bool bracket = authority.starts_with('[');
  const std::size_t end = bracket ? authority.find(']') : authority.find(':');
  if (bracket && end == std::string::npos) return Fail(BadEndpoint(url, "a ']' is missing"));
  endpoint.host = bracket ? authority.substr(1, end - 1) : authority.substr(0, end);
  const std::string after = end == std::string::npos ? "" : authority.substr(end + (bracket ? 1 : 0));
  endpoint.port = after.empty() ? (endpoint.tls ? "443" : "80") : after.substr(1);
  const auto port = ParseInt(endpoint.port);
  if ((!after.empty() && after[0] != ':') || !port || *port < 1 || *port > 65535) {
    return Fail(BadEndpoint(url, "the port is not a number from 1 to 65535"));
  }
  if (endpoint.host.empty() || !std::ranges::all_of(endpoint.host, IsHostCharacter) ||
      !std::ranges::all_of(endpoint.path, IsPathCharacter)) {
    return Fail(BadEndpoint(url, "host or path have characters that do not belong there"));
  }
  return endpoint;
}

struct Connection::State {
  UniqueFd fd;
  std::string peer;
  TlsContext context;
  TlsSession session;  // nullptr: plain

  // What to do about the result of an OpenSSL call: nothing, wait, or fail.
  [[nodiscard]] Result<bool> IsDone(int result, Deadline deadline, const std::string& what) const {
    if (result > 0) return true;
    const int saved_errno = errno;
    switch (SSL_get_error(session.get(), result)) {
      case SSL_ERROR_WANT_READ:
        RH_TRY(Wait(fd.get(), POLLIN, deadline, what));
        return false;
      case SSL_ERROR_WANT_WRITE:
        RH_TRY(Wait(fd.get(), POLLOUT, deadline, what));
        return false;
      case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        return Fail(SocketFailure(saved_errno != 0 ? saved_errno : ECONNRESET, what));
      default:
        return Fail(TlsFailure(session.get(), what));
    }
  }

  // In TLS 1.3 a server refuses our certificate when the handshake has already ended for us. It sends an
  // alert and closes the connection. A write may fail before the alert has been read (RFC 8446, 4.4.2.4).
  [[nodiscard]] Error LastWords(Error error, const std::string& what) const {
    char byte = 0;
    std::size_t got = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(session.get(), &byte, 1, &got);
    const bool alert = result <= 0 && SSL_get_error(session.get(), result) == SSL_ERROR_SSL;
    if (alert) return TlsFailure(session.get(), what);
    ERR_clear_error();
    return error;
  }
};

Connection::Connection(std::unique_ptr<State> state) : state_(std::move(state)) {}

Connection::~Connection() {
  // A farewell without waiting: a full buffer or a dead peer loses it.
  if (state_->session != nullptr) SSL_shutdown(state_->session.get());
  ERR_clear_error();
}

Result<std::unique_ptr<Connection>> Connection::Open(const HttpEndpoint& endpoint, const TlsSettings& tls,
                                                     Deadline deadline) {
  auto state = std::make_unique<State>();
  state->peer = endpoint.ToString();
  if (endpoint.tls) state->context = RH_TRY_WRAP(MakeTlsContext(tls), state->peer);
  state->fd = RH_TRY(ConnectToAny(endpoint, deadline));
  if (endpoint.tls) {
    const std::string& name = tls.server_name.empty() ? endpoint.host : tls.server_name;
    state->session = RH_TRY(MakeTlsSession(state->context, state->fd.get(), name));
    const std::string what = "TLS handshake with " + state->peer;
    for (;;) {
      ERR_clear_error();
      if (RH_TRY(state->IsDone(SSL_connect(state->session.get()), deadline, what))) break;
    }
  }
  return std::unique_ptr<Connection>(new Connection(std::move(state)));
}

Result<void> Connection::Write(std::string_view bytes, Deadline deadline) {
  const std::string what = "sending to " + state_->peer;
  while (!bytes.empty()) {
    std::size_t written = 0;
    if (state_->session != nullptr) {
      ERR_clear_error();
      const int result = SSL_write_ex(state_->session.get(), bytes.data(), bytes.size(), &written);
      auto done = state_->IsDone(result, deadline, what);
      if (!done) return Fail(state_->LastWords(std::move(done.error()), what));
      if (!*done) continue;
    } else {
      const ssize_t result = ::send(state_->fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (result < 0 && errno == EAGAIN) {
        RH_TRY(Wait(state_->fd.get(), POLLOUT, deadline, what));
        continue;
      }
      if (result < 0 && errno == EINTR) continue;
      if (result < 0) return Fail(SocketFailure(errno, what));
      written = static_cast<std::size_t>(result);
    }
    bytes.remove_prefix(written);
  }
  return {};
}

Result<std::size_t> Connection::Read(char* buffer, std::size_t size, Deadline deadline) {
  const std::string what = "waiting for the answer of " + state_->peer;
  for (;;) {
    if (state_->session != nullptr) {
      std::size_t got = 0;
      ERR_clear_error();
      const int result = SSL_read_ex(state_->session.get(), buffer, size, &got);
      if (result <= 0 && (SSL_get_shutdown(state_->session.get()) & SSL_RECEIVED_SHUTDOWN) != 0 &&
          ERR_peek_error() == 0) {
        return std::size_t{0};
      }
      if (RH_TRY(state_->IsDone(result, deadline, what))) return got;
      continue;
    }
    const ssize_t got = ::recv(state_->fd.get(), buffer, size, 0);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EAGAIN) {
      RH_TRY(Wait(state_->fd.get(), POLLIN, deadline, what));
    } else if (errno != EINTR) {
      return Fail(SocketFailure(errno, what));
    }
  }
}

bool Connection::IsIdle() const {
  pollfd looked{state_->fd.get(), POLLIN | POLLRDHUP, 0};
  if (::poll(&looked, 1, 0) != 0) return false;
  return state_->session == nullptr || SSL_has_pending(state_->session.get()) == 0;
}

}  // namespace railhead::http

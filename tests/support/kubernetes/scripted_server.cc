#include "tests/support/kubernetes/scripted_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace railhead::testing {
namespace {

// False: the test has ended.
bool Readable(int fd, int stop) {
  std::array<pollfd, 2> waited{pollfd{fd, POLLIN, 0}, pollfd{stop, POLLIN, 0}};
  ::poll(waited.data(), waited.size(), -1);
  return waited[1].revents == 0;
}

bool IsWhole(const std::string& request) {
  const std::size_t end = request.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const std::string name = "Content-Length: ";
  const std::size_t at = request.find(name);
  const std::size_t length = at < end ? std::stoul(request.substr(at + name.size())) : 0;
  return request.size() >= end + 4 + length;
}

}  // namespace

ScriptedServer::ScriptedServer(std::vector<Step> steps) : steps_(std::move(steps)) {
  listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = static_cast<sockaddr*>(static_cast<void*>(&address));
  std::array<int, 2> ends{};
  if (::bind(listener_.get(), generic, size) != 0 || ::listen(listener_.get(), 16) != 0 ||
      ::getsockname(listener_.get(), generic, &size) != 0 || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("no server");
  }
  port_ = ntohs(address.sin_port);
  stop_read_ = UniqueFd(ends[0]);
  stop_write_ = UniqueFd(ends[1]);
  thread_ = std::thread([this] { Run(); });
}

ScriptedServer::~ScriptedServer() {
  stop_write_.Reset();
  thread_.join();
}

std::string ScriptedServer::Answer(int status, const std::string& body, const std::string& headers) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + headers + "\r\n" + body;
}

bool ScriptedServer::ReadRequest(int fd) {
  std::string request;
  std::array<char, 4096> buffer{};
  while (!IsWhole(request)) {
    if (!Readable(fd, stop_read_.get())) return false;
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got <= 0) return false;
    request.append(buffer.data(), static_cast<std::size_t>(got));
  }
  last_ = request;
  ++requests_;
  return true;
}

void ScriptedServer::Run() {
  UniqueFd peer;
  for (const Step& step : steps_) {
    bool ready = peer.valid() && !step.close_unread && ReadRequest(peer.get());
    while (!ready) {
      if (!Readable(listener_.get(), stop_read_.get())) return;
      peer = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      ++connections_;
      ready = step.close_unread || ReadRequest(peer.get());
    }
    if (!step.bytes.empty()) (void)::send(peer.get(), step.bytes.data(), step.bytes.size(), MSG_NOSIGNAL);
    if (step.hang) break;
    if (step.close || step.close_unread) peer.Reset();
  }
  Readable(-1, stop_read_.get());
}

}  // namespace railhead::testing

#include "tests/support/kubernetes/server_process.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <stdexcept>
#include <utility>

namespace railhead::testing {

std::unique_ptr<Process> StartServer(std::vector<std::string> arguments, const std::string& log,
                                     std::function<void()> in_child) {
  return std::make_unique<Process>(ProcessSpec{.arguments = std::move(arguments),
                                               .out = log,
                                               .err = log,
                                               .ends_with_test = true,
                                               .in_child = std::move(in_child)});
}

ReservedPort::ReservedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = static_cast<sockaddr*>(static_cast<void*>(&address));
  if (::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      ::bind(fd_.get(), generic, size) != 0 || ::getsockname(fd_.get(), generic, &size) != 0) {
    throw std::runtime_error("no free port");
  }
  number_ = ntohs(address.sin_port);
}

}  // namespace railhead::testing

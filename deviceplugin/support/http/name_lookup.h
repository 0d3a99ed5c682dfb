// Addresses of a host, not later than a deadline.
//
// c-ares asks the name servers and waits for sockets only, so a call ends at its deadline. Each call reads
// /etc/hosts first, then resolv.conf(5). A name server gets a third of the call's time. So the next one is
// asked in time when a server is silent. Numeric addresses and paths of Unix sockets need no lookup.
//
// getaddrinfo(3) loads shared libraries for nsswitch.conf(5), and a static program cannot do that. Other
// sources of that file are not asked.
// Threads: thread-safe; waits. Errors: kTimeout, kUnavailable (the name is not known now).
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::http {

using Deadline = std::chrono::steady_clock::time_point;

struct SocketAddress {
  sockaddr_storage address{};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* get() const {
    return static_cast<const sockaddr*>(static_cast<const void*>(&address));
  }
};

struct NameServers {
  std::string configuration = "/etc/resolv.conf";
  std::uint16_t port = 53;
};

// The first one is to be tried first. Addresses without a route from this host are left out if any has one.
Result<std::vector<SocketAddress>> LookUp(const std::string& host, const std::string& port, Deadline deadline,
                                          const NameServers& servers = {});

}  // namespace railhead::http

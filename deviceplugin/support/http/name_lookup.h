// Addresses of a host, not later than a deadline.
//
// getaddrinfo(3) cannot be interrupted and waits as long as resolv.conf says, so it runs in a
// thread of its own, which may outlive the call: then its answer is thrown away. Numeric
// addresses need no thread.
// Threads: thread-safe. Errors: kTimeout, kUnavailable (the name is not known now).
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead {

using Deadline = std::chrono::steady_clock::time_point;

struct SocketAddress {
  sockaddr_storage address{};
  socklen_t length = 0;
};

Result<std::vector<SocketAddress>> LookUp(const std::string& host, const std::string& port,
                                          Deadline deadline);

}  // namespace railhead

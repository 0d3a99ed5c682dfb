// Where HTTP is served: a numeric IP address and a port.
//
//   127.0.0.1:9917   [::1]:9917   [::]:9917 (IPv4, too)   0.0.0.0:9917
//
// Names are not looked up: what they stand for may change, and who listens should not.
// Threads: values and pure functions. Errors: kInvalid.
#pragma once

#include <sys/socket.h>

#include <string>

#include "netns/base/result.h"

namespace railhead {

struct HttpAddress {
  sockaddr_storage address{};
  socklen_t length = 0;
};

Result<HttpAddress> ParseHttpAddress(const std::string& text);
// As ParseHttpAddress() takes it.
std::string ToString(const HttpAddress& address);

}  // namespace railhead

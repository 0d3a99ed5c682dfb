// HttpAddress: where HTTP is served: a numeric IP address and a port, or a Unix socket.
//
//   127.0.0.1:9917   [::1]:9917   [::]:9917 (IPv4, too)   0.0.0.0:9917   unix:/run/probes/railheadd.sock
//
// A Unix socket is of one server: what an ended one left at its path is replaced.
// Names are not resolved: their address may change, and the address to listen at should not.
// Threads: values and pure functions. Errors: kInvalid.
#pragma once

#include <sys/socket.h>

#include <string>

#include "netns/base/result.h"

namespace railhead::http {

struct HttpAddress {
  sockaddr_storage address{};
  socklen_t length = 0;
};

Result<HttpAddress> ParseHttpAddress(const std::string& text);
// As ParseHttpAddress() takes it.
std::string ToString(const HttpAddress& address);
// The path of a Unix socket; "": an IP address.
std::string SocketPath(const HttpAddress& address);

}  // namespace railhead::http

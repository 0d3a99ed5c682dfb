// Servers as children of the test, and ports for them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "netns/base/unique_fd.h"
#include "tests/support/process.h"

namespace railhead::testing {

// The server ends with the test, also when the test is killed. Its output is appended to `log`. `in_child`
// runs before the program does; it may only make system calls.
std::unique_ptr<Process> StartServer(std::vector<std::string> arguments, const std::string& log,
                                     std::function<void()> in_child = {});

// A TCP port of 127.0.0.1 that no other process gets while this lives. It refuses connections until a server
// listens there.
//
// The kernel does not give a bound port to a process that asks for any port (net/ipv4/inet_connection_sock.c,
// inet_csk_find_open_port). Nor does it use the port as the local end of a connection (inet_hashtables.c,
// __inet_hash_connect). A server that asks for this port with SO_REUSEADDR, as Go's servers do, still gets
// it, and may take it again later.
class ReservedPort {
 public:
  ReservedPort();
  [[nodiscard]] int number() const { return number_; }

 private:
  UniqueFd fd_;
  int number_ = 0;
};

}  // namespace railhead::testing

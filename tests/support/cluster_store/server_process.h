// Servers as children of the test, and ports for them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "netns/base/unique_fd.h"
#include "tests/support/process.h"

namespace railhead::testing {

// Ends with the test, also when the test is killed. Output is appended to `log`. `in_child` runs before the
// program does; only system calls there.
std::unique_ptr<Process> StartServer(std::vector<std::string> arguments, const std::string& log,
                                     std::function<void()> in_child = {});

// A TCP port of 127.0.0.1 that nobody else is given while this lives; refuses connections until a server
// listens there.
//
// The kernel gives a bound port to no one that asks for any port (net/ipv4/inet_connection_sock.c,
// inet_csk_find_open_port) nor to a connection as its own end (inet_hashtables.c, __inet_hash_connect). A
// server that asks for this very one and sets SO_REUSEADDR, as Go's do, has it all the same, and may come
// back to it.
class ReservedPort {
 public:
  ReservedPort();
  [[nodiscard]] int number() const { return number_; }

 private:
  UniqueFd fd_;
  int number_ = 0;
};

}  // namespace railhead::testing

// A server as a child that ends with the test, also when the test is killed.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "netns/base/unique_fd.h"

namespace railhead::testing {

class ServerProcess {
 public:
  // Found along PATH. Output goes to `log`. `in_child` runs before the program does; only
  // system calls there.
  ServerProcess(const std::vector<std::string>& arguments, std::string log,
                const std::function<void()>& in_child = {});
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  void Signal(int signal) const;
  // SIGKILL, and wait.
  void Kill();
  [[nodiscard]] bool HasEnded();
  [[nodiscard]] std::string Log() const;

 private:
  const std::string log_;
  pid_t pid_ = -1;
};

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

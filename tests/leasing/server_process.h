// A server as a child that ends with the test, also when the test is killed.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

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

// A TCP port of 127.0.0.1 that was free just now.
int FreePort();

// Until `condition` holds; false after a generous while.
bool WaitFor(const std::function<bool()>& condition);

}  // namespace railhead::testing

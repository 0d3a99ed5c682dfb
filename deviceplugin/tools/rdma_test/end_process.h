// A process for one end of a test, in that end's network namespace.
//
// The process has a /sys of its namespace, ignores the terminal's signals (its parent ends it) and dies with
// its parent. The object's destructor kills and reaps it.
// Ownership: moves. Threads: the calling process has one thread only.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/ns/netns.h"

namespace railhead::rdma_test {

class EndProcess {
 public:
  // `ns`: its namespace; nullptr: this one. `work`'s result is the process's.
  static Result<EndProcess> Start(const NetNs* ns, const std::function<Result<std::string>()>& work);

  EndProcess(EndProcess&& other) noexcept;
  EndProcess& operator=(EndProcess&&) = delete;
  EndProcess(const EndProcess&) = delete;
  EndProcess& operator=(const EndProcess&) = delete;
  ~EndProcess();

  // Readable when Read() has something to read.
  [[nodiscard]] int fd() const { return pipe_.get(); }
  // Reads without waiting. Returns the process's result once it has ended. kInternal: it has ended without
  // one.
  std::optional<Result<std::string>> Read();

 private:
  EndProcess(pid_t pid, UniqueFd pipe) : pid_(pid), pipe_(std::move(pipe)) {}
  void Reap();

  pid_t pid_ = -1;
  UniqueFd pipe_;
  std::string said_;
};

}  // namespace railhead::rdma_test

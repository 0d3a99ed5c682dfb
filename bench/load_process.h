// What else a machine does while something is measured: a process of its own, which does one of several works
// over and over until it is told to do another.
//
// A process, not a thread: then it has nothing in common with the measuring one but the kernel and the
// processors; threads would also wait for each other's memory map. Start it before there are threads.
// Ownership: the destructor ends the process. Threads: one at a time. Errors: what a work has said, from the
// next call on.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "netns/base/result.h"

namespace railhead::bench {

class LoadProcess {
 public:
  // One piece, after which the next may be of another work.
  using Work = std::function<Result<void>()>;

  // Does nothing yet.
  static Result<LoadProcess> Start(const std::vector<Work>& works);
  LoadProcess(LoadProcess&&) noexcept;
  LoadProcess& operator=(LoadProcess&&) = delete;
  ~LoadProcess();

  // Returns when the process is at it.
  Result<void> Switch(std::size_t work);
  struct Done {
    std::uint64_t pieces = 0;
    std::chrono::nanoseconds took{0};  // all of them together
  };
  // Since then.
  Result<Done> Progress();

 private:
  struct Shared;
  LoadProcess(Shared* shared, pid_t pid) : shared_(shared), pid_(pid) {}
  [[noreturn]] static void Run(const std::vector<Work>& works, pid_t parent, Shared* shared);
  Result<void> Check();

  Shared* shared_;
  pid_t pid_;
};

}  // namespace railhead::bench

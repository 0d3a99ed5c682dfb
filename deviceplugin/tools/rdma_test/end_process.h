// A process for one end of a test, in that end's network namespace; and signals that end tests.
//
// The process has a /sys of its namespace, ignores the terminal's signals (its parent ends it) and
// dies with its parent. Nothing of it is left when the object goes: it is killed and reaped.
// Ownership: moves. Threads: the calling process has one thread only.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/ns/netns.h"

namespace railhead::rdmatest {

class EndProcess {
 public:
  // `ns`: where; nullptr: in this namespace. `work`'s result is the process's.
  static Result<EndProcess> Start(const NetNs* ns, const std::function<Result<std::string>()>& work);

  EndProcess(EndProcess&& other) noexcept;
  EndProcess& operator=(EndProcess&&) = delete;
  EndProcess(const EndProcess&) = delete;
  EndProcess& operator=(const EndProcess&) = delete;
  ~EndProcess();

  // Readable when there is something for Read().
  [[nodiscard]] int fd() const { return pipe_.get(); }
  // Takes what there is, without waiting. Its result, once it has ended: kInternal when it has
  // ended without one.
  std::optional<Result<std::string>> Read();

 private:
  EndProcess(pid_t pid, UniqueFd pipe) : pid_(pid), pipe_(std::move(pipe)) {}
  void Reap();

  pid_t pid_ = -1;
  UniqueFd pipe_;
  std::string said_;
};

// SIGINT, SIGTERM and SIGHUP, held back while the object lives and read from a descriptor instead.
class Interrupts {
 public:
  static Result<Interrupts> Catch();
  Interrupts(Interrupts&& other) noexcept;
  Interrupts& operator=(Interrupts&&) = delete;
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  // Readable from the first such signal on.
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  explicit Interrupts(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace railhead::rdmatest

// Interrupts: the signals that end tests, SIGINT, SIGTERM and SIGHUP. They are held back while the object
// lives, and read from a descriptor instead.
//
// Ownership: moves. Threads: the calling process has one thread only.
#pragma once

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead::rdma_test {

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

inline constexpr const char* kInterrupted = "interrupted";

}  // namespace railhead::rdma_test

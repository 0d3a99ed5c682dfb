// An exclusive flock(2) on a file, held while the object lives.
//
// The kernel drops it when the last descriptor of the open file description is
// closed, so a killed holder never leaves it locked; a child that inherits the
// descriptor keeps it (see Fd()). Waiters get it in the order in which they came. As flock(2) knows no
// deadline, a timer's signal (SIGRTMAX - 1, whose handler does nothing and stays) ends the waiting.
// Lock files are never removed: removing one under a waiter would split the
// lock in two.
#pragma once

#include <chrono>
#include <string>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead {

class FileLock {
 public:
  // Creates the file and its directories if needed. kTimeout when someone else
  // still holds it after `limit`.
  static Result<FileLock> Acquire(const std::string& path, std::chrono::milliseconds limit);

  // The locked descriptor, close-on-exec.
  [[nodiscard]] int Fd() const { return fd_.get(); }

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace railhead

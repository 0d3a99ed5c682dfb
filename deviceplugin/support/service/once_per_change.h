// OncePerChange: whether an error is news, so that a failure that stays the same is a warning only once.
// Threads: one.
#pragma once

#include <string>
#include <utility>

#include "netns/base/result.h"

namespace railhead {

class OncePerChange {
 public:
  // Whether it differs from the error before.
  bool IsNew(const Error& error) { return std::exchange(known_, error.message) != error.message; }
  template <typename T>
  bool IsNew(const Result<T>& done) {
    if (!done) return IsNew(done.error());
    Clear();
    return false;
  }
  // All is well again. Whether there was an error.
  bool Clear() { return !std::exchange(known_, std::string()).empty(); }

 private:
  std::string known_;
};

}  // namespace railhead

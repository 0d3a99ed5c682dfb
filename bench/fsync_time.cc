#include "bench/fsync_time.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

namespace {

// What an interposed function of C counts has no other place.
std::atomic<std::int64_t> calls{0};
std::atomic<std::int64_t> nanoseconds{0};

}  // namespace

extern "C" __attribute__((visibility("default"))) int fsync(int fd) {
  const auto start = std::chrono::steady_clock::now();
  const auto result = static_cast<int>(::syscall(SYS_fsync, fd));
  nanoseconds += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  ++calls;
  return result;
}

namespace railhead::bench {

void ResetFsyncTime() {
  calls = 0;
  nanoseconds = 0;
}

FsyncTime FsyncTimeSoFar() {
  return {calls, static_cast<double>(nanoseconds) / 1e3};
}

}  // namespace railhead::bench

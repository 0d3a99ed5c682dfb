// What of a piece of work was waiting for the disk: counts the calls of fsync(2) in this program
// and the time they took.
//
// The program that links this has its own fsync(); the C library's is not used.
// Threads: counts are of the whole program; Reset() and Taken() from one thread.
#pragma once

#include <cstdint>

namespace railhead::bench {

struct FsyncTime {
  std::int64_t calls = 0;
  double microseconds = 0;
};

void ResetFsyncTime();
FsyncTime FsyncTimeSoFar();

}  // namespace railhead::bench

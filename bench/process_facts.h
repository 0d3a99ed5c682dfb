// What /proc says of a running process: memory, threads, processor time, how often it woke up.
// Threads: any. Errors: kNotFound when the process has gone.
#pragma once

#include <sys/types.h>

#include "netns/base/result.h"

namespace railhead::bench {

struct ProcessMemory {
  double resident_mb = 0;  // VmRSS; MB are millions of bytes
  double anonymous_mb = 0;
  double proportional_mb = 0;  // Pss: shared pages count for a share
  int threads = 0;
};

struct ProcessTime {
  double cpu_ms = 0;   // user and system, all threads, exact
  double wakeups = 0;  // voluntary context switches of the threads that are there
};

Result<ProcessMemory> MemoryOf(pid_t pid);
Result<ProcessTime> TimeOf(pid_t pid);

}  // namespace railhead::bench

// Which processes a network namespace has.
//
// Checks every process in /proc (one stat(2) each), but not threads in another namespace than their process.
// A namespace that only a descriptor or a mount holds has no process.
//
// Identifies a namespace by the inode number of its file net/dev in procfs, which is its own (proc_register
// in fs/proc/generic.c). Reading /proc/PID/ns/net would need the right to trace the process; this file does
// not. Needs the node's /proc: a private PID namespace shows less. Threads: any.
#pragma once

#include <sys/types.h>

#include <vector>

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

// Stops at the first process.
Result<bool> HasProcesses(const NetNs& ns);
// In the order of /proc. Each may have ended since.
Result<std::vector<pid_t>> ProcessesIn(const NetNs& ns);

}  // namespace railhead

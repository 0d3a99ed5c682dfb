// Which processes a network namespace has.
//
// Looks at every process that /proc shows (one stat(2) each); threads that are elsewhere than their
// process are not looked at. A namespace that is only held, by a descriptor or a mount, has none.
//
// Namespaces are told apart by the inode number of their file net/dev in procfs, which
// each has one of its own (proc_register in fs/proc/generic.c), not by /proc/PID/ns/net:
// that may be seen only of processes that one may trace, this of all.
// Needs the node's /proc: a private PID namespace shows less. Threads: any.
#pragma once

#include <sys/types.h>

#include <vector>

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

// Looks until there is one.
Result<bool> HasProcesses(const NetNs& ns);
// In the order of /proc. Each may have ended since.
Result<std::vector<pid_t>> ProcessesIn(const NetNs& ns);

}  // namespace railhead

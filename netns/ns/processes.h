// Whether a network namespace has processes.
//
// Looks at every process that /proc shows (one stat(2) each) until one is in the
// namespace; threads that are elsewhere than their process are not looked at. A
// namespace that is only held, by a descriptor or a mount, has none.
//
// Namespaces are told apart by the inode number of their file net/dev in procfs, which
// each has one of its own (proc_register in fs/proc/generic.c), not by /proc/PID/ns/net:
// that may be seen only of processes that one may trace, this of all.
// Needs the node's /proc: a private PID namespace shows less. Threads: any.
#pragma once

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

Result<bool> HasProcesses(const NetNs& ns);

}  // namespace railhead

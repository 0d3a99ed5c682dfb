// Whether a network namespace has processes.
//
// Looks at the namespace of every process that /proc shows (one stat(2) each) until
// one is in it; threads that are elsewhere than their process are not looked at. A
// namespace that is only held, by a descriptor or a mount, has none.
// Needs CAP_SYS_PTRACE for processes of others, and the node's /proc (a private PID
// namespace shows less). Threads: any.
#pragma once

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

Result<bool> HasProcesses(const NetNs& ns);

}  // namespace railhead

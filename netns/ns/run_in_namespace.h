// The one place where code of ours runs in another network namespace: a short-lived child process. It reads
// facts that only sysfs or /proc/sys of that namespace has.
//
// The child gets a private mount namespace with that network namespace's sysfs on /sys; /proc/sys/net follows
// the process by itself. It sends its result through a pipe and ends by _exit (or with its parent, or at the
// deadline). It closes all other descriptors first: a lock that another thread of the parent holds is not its
// own. `work` opens what it needs.
// When the function returns, the child and its mounts are gone.
// Needs CAP_SYS_ADMIN. Threads: any. The child is a copy of the calling thread alone. So `work` must not take
// locks that other threads may hold (malloc is safe with glibc).
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

// kTimeout when `work` is not done at the deadline; it is killed then.
Result<std::string> RunInNamespace(const NetNs& ns, std::chrono::steady_clock::time_point deadline,
                                   const std::function<Result<std::string>()>& work);

// The child's first step, for processes that are forked otherwise: takes the calling process there for good.
// kPermission without CAP_SYS_ADMIN.
Result<void> EnterForGood(const NetNs& ns);

}  // namespace railhead

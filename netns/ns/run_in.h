// The one place where code of ours runs in another network namespace: a
// short-lived child process, for what only sysfs or /proc/sys of that namespace
// can tell.
//
// The child gets a private mount namespace with that network namespace's sysfs
// on /sys; /proc/sys/net follows the process by itself. It hands its result back
// through a pipe and ends by _exit (or with its parent, or at the deadline). It
// closes all other descriptors first: a lock that another thread of the parent
// holds is not its own. `work` opens what it needs.
// Nothing of it is left when the function returns.
// Needs CAP_SYS_ADMIN. Threads: any; the child is a copy of the calling thread
// alone, so `work` must not take locks that other threads may hold (malloc is
// safe with glibc).
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

// What the child does first, for processes that are forked otherwise: takes the calling process
// there for good. kPermission without CAP_SYS_ADMIN.
Result<void> EnterForGood(const NetNs& ns);

// "ipv4/conf/net1/arp_announce" of that namespace, without trailing newline.
Result<std::string> ReadNetSysctl(const NetNs& ns, const std::string& name);

}  // namespace railhead

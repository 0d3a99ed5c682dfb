// Turning a netlink request of a traced process into one that does nothing.
//
// The request's type becomes NLMSG_NOOP, which the kernel acknowledges without doing
// anything (netlink_rcv_skb in net/netlink/af_netlink.c): the sender believes that it
// is done. Threads: the tracer's.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "tests/system/crash/tracer.h"

namespace railhead::crash {

// `pid` stands before system call `number` with these arguments. true: it was about to
// send such a request, which is erased now.
bool EraseNetlinkRequest(pid_t pid, std::uint64_t number, const std::uint64_t* arguments,
                         const Suppressed& suppressed);

}  // namespace railhead::crash

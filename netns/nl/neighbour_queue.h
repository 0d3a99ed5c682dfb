// How much a link queues for a neighbour whose MAC address the kernel does not know yet.
//
// The queue counts against the send buffer of the sending socket, for the three seconds that the kernel asks.
// By default the limit is as large as the whole send buffer (unres_qlen_bytes and wmem_default, 212,992): one
// absent neighbour takes all of the buffer. Set by netlink: containers have /proc/sys read-only. Needs
// CAP_NET_ADMIN. Threads: any. Source: neightbl_set in net/core/neighbour.c.
#pragma once

#include <cstdint>

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

// For each neighbour of `family` (AF_INET or AF_INET6) on link `index` of `ns`.
Result<void> LimitNeighbourQueue(const NetNs& ns, int index, int family, std::uint32_t bytes);

}  // namespace railhead

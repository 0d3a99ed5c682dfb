// How much a link keeps for a neighbour whose MAC address the kernel does not know yet.
//
// What is kept counts against the send buffer of the socket that sent it, for the three seconds that the
// kernel asks. By default that is as much as the whole send buffer (unres_qlen_bytes and wmem_default,
// 212,992): one neighbour that is not there takes all of it. Set by netlink: containers have /proc/sys
// read-only. Needs CAP_NET_ADMIN. Threads: any. Source: neightbl_set in net/core/neighbour.c.
#pragma once

#include <cstdint>

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

// For each neighbour of `family` (AF_INET or AF_INET6) on link `index` of `ns`.
Result<void> LimitNeighbourQueue(const NetNs& ns, int index, int family, std::uint32_t bytes);

}  // namespace railhead

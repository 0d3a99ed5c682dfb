// A neighbour solicitation from an address that is in use, which the kernel does not send by itself.
//
// When Linux has to resolve an IPv6 neighbour without a packet to send there (NTF_USE), it asks from its
// link-local address only (ndisc_ns_create in net/ipv6/ndisc.c). So it waits until duplicate address
// detection of that address is over, a second or two. On a link without such an address it never asks. The
// answer to our solicitation reaches the entry that NTF_USE made. The solicitation goes out by a raw ICMPv6
// socket: the kernel chooses the source among the link's addresses. Closing that socket costs nothing; a
// packet socket would wait for an RCU grace period. Needs CAP_NET_RAW. Threads: any.
// Source: RFC 4861 sections 4.3 and 7.2.2, RFC 3542 section 3.1 (checksum).
#pragma once

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead::nl {

// One solicitation for IPv6 address `target` from link `index`, whose MAC is `mac`.
// false: the link has no address to ask from.
Result<bool> SolicitNeighbour(const NetNs& ns, int index, const MacAddress& mac, const IpAddress& target);

}  // namespace railhead::nl

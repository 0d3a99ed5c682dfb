// A neighbour solicitation from an address that is in use, for what the kernel does not
// ask by itself.
//
// Told to resolve an IPv6 neighbour without a packet to send there (NTF_USE), Linux
// asks from its link-local address only (ndisc_ns_create in net/ipv6/ndisc.c): not
// before duplicate address detection of that one is over, a second or two, and never on
// a link that has none. The answer to this one reaches the entry that NTF_USE made.
// By a raw ICMPv6 socket: the kernel chooses the source among the link's addresses, and
// closing costs nothing (a packet socket would wait for an RCU grace period).
// Needs CAP_NET_RAW. Threads: any.
// Source: RFC 4861 sections 4.3 and 7.2.2, RFC 3542 section 3.1 (checksum).
#pragma once

#include "netns/base/ip_address.h"
#include "netns/base/mac_address.h"
#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead::nl {

// One solicitation for IPv6 address `target` from link `index`, whose MAC is `mac`.
// false: the link has no address to ask from.
Result<bool> SolicitNeighbour(const NetNs& ns, int index, const MacAddress& mac, const IpAddress& target);

}  // namespace railhead::nl

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

#include <cstdint>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead::nl {

// One solicitation for IPv6 address `target` from link `index`, whose MAC is `mac`.
// false: the link has no address to ask from.
Result<bool> SolicitNeighbour(const NetNs& ns, int index, const MacAddress& mac, const IpAddress& target);

// A gratuitous ARP request, which the kernel sends on request by rtnetlink.
//
// Closing a packet socket waits for an RCU grace period (packet_release in net/packet/af_packet.c): 10 to 20
// ms, a tenth of a whole ADD. Resolving the own address costs none. The kernel then asks "who has A, tell A"
// (neigh_add with NTF_USE, neigh_event_send, arp_solicit), which is RFC 5227's announcement. The entry is
// deleted before it asks again.
// Internal to netns. Threads: any.

// The link must be ready (RouteApi::WaitCarrier); the sender's MAC is the link's.
// Returns false, and sends nothing, when `address` is not the only IPv4 address of the link. The kernel might
// then name another one as the sender (inet_select_addr).
Result<bool> SendGratuitousArp(const NetNs& ns, int link, const IpAddress& address);

}  // namespace railhead::nl

namespace railhead {

// How much a link queues for a neighbour whose MAC address the kernel does not know yet.
//
// The queue counts against the send buffer of the sending socket, for the three seconds that the kernel asks.
// By default the limit is as large as the whole send buffer (unres_qlen_bytes and wmem_default, 212,992): one
// absent neighbour takes all of the buffer. Set by netlink: containers have /proc/sys read-only. Needs
// CAP_NET_ADMIN. Threads: any. Source: neightbl_set in net/core/neighbour.c.

// For each neighbour of `family` (AF_INET or AF_INET6) on link `index` of `ns`.
Result<void> LimitNeighbourQueue(const NetNs& ns, int index, int family, std::uint32_t bytes);

}  // namespace railhead

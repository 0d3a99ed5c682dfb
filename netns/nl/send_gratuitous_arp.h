// A gratuitous ARP request, which the kernel sends on request by rtnetlink.
//
// Closing a packet socket waits for an RCU grace period (packet_release in net/packet/af_packet.c): 10 to 20
// ms, a tenth of a whole ADD. Resolving the own address costs none. The kernel then asks "who has A, tell A"
// (neigh_add with NTF_USE, neigh_event_send, arp_solicit), which is RFC 5227's announcement. The entry is
// deleted before it asks again.
// Internal to netns. Threads: any.
#pragma once

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead::nl {

// The link must be ready (RouteApi::WaitCarrier); the sender's MAC is the link's.
// Returns false, and sends nothing, when `address` is not the only IPv4 address of the link. The kernel might
// then name another one as the sender (inet_select_addr).
Result<bool> SendGratuitousArp(const NetNs& ns, int link, const IpAddress& address);

}  // namespace railhead::nl

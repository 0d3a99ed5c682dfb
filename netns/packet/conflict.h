// Address conflict detection: who else uses an address that we are about to use.
//
// IPv4 as RFC 5227 2.1.1, IPv6 as RFC 4862 5.4, all claims at once in one loop: three
// probes each, with the RFC's random times scaled to the budget (a seventh of it is
// its second: first probe within 0..1, the others 1..2 after the one before, and at
// least 2 of listening at the end; a process that is held up takes longer than the
// budget rather than listen less).
//
// A conflict is, on the claim's link and from another MAC than the claim's:
//   an ARP packet whose sender address is the claimed one; a broadcast ARP probe for
//   it (one to a single station is a switch's or hypervisor's device tracking, which
//   asks whether we are there, not for the address);
//   a neighbour advertisement for it; a solicitation for it from ::.
// Our own MACs, in frames that a NIC or a switch reflects, are none. Damaged packets
// are ignored.
//
// Needs CAP_NET_RAW. Costs, beside the budget: one packet socket per address family
// in use, the closing of which waits for an RCU grace period each, some milliseconds
// to tens of them (packet_release in net/packet/af_packet.c). The sockets are not bound
// to interfaces: one per link would cost one such wait per link.
// Threads: any. Errors: kInvalid for claims that cannot be probed, before anything is
// sent; kNotFound when a link is gone; else what the kernel refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

// An address that a link is about to use.
struct AddressClaim {
  int link = 0;  // index
  MacAddress mac;
  IpAddress address;

  bool operator==(const AddressClaim&) const = default;
};

// Who else uses a claimed address, or claims it at the same time.
struct AddressConflict {
  AddressClaim claim;
  MacAddress other;
  MacAddress source;  // of the frame: where VFs may not spoof, its sender's, whatever `other` says

  bool operator==(const AddressConflict&) const = default;
};

// Whether a frame, received on the claim's link, contradicts the claim; whose it is.
// `own`: MACs whose probes are ours.
std::optional<MacAddress> RivalIn(std::span<const std::uint8_t> frame, const AddressClaim& claim,
                                  const std::vector<MacAddress>& own);

// At most one conflict per claim, in the order of the claims. Ends before the budget
// does only when every claim has one. A budget of zero or less: nothing is sent.
Result<std::vector<AddressConflict>> ProbeAddresses(const NetNs& ns, const std::vector<AddressClaim>& claims,
                                                    std::chrono::milliseconds budget);

}  // namespace railhead

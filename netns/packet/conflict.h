// Address conflict detection: finds other users of an address that we are about to use.
//
// IPv4 follows RFC 5227 2.1.1, IPv6 RFC 4862 5.4, all targets at once in one loop. Each target gets three
// probes, with the RFC's random times scaled to the budget: a seventh of the budget counts as a second. The
// first probe comes within 0..1, each other one 1..2 after the one before. At least 2 of listening follow at
// the end. A process that is held up takes longer than the budget rather than listen less.
//
// A conflict is one of these packets, on the target's link and from another MAC than the target's.
//   An ARP packet whose sender address is the target's.
//   A broadcast ARP probe for the target's address. A probe to a single host does not count. It is device
//   tracking of a switch or hypervisor, which asks whether we are there, not for the address.
//   A neighbour advertisement for it, or a solicitation for it from ::.
// A router is asked for, not claimed: only who says that it has the address counts, since other hosts ask for
// it, too. IPv6 asks from a link-local address of the link's MAC. A solicitation from :: would be a duplicate
// to a router that has just got its address, which would then give it up (RFC 4862 5.4.3). From an address of
// ours it would correct the router's entry for that one. IPv4 asks from 0.0.0.0.
//
// Our own MACs, in frames that a NIC or a switch reflects, do not count. Damaged packets are ignored.
//
// Needs CAP_NET_RAW. Costs, beside the budget: one packet socket per address family in use. Closing each
// waits for an RCU grace period, some milliseconds to tens of them (packet_release in
// net/packet/af_packet.c). The sockets are not bound to interfaces: one per link would cost one such wait per
// link.
// Threads: any. Errors: kInvalid for targets that cannot be probed, before anything is sent; kNotFound when a
// link is gone; else the kernel's refusal.
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

// An address that a link is about to use, or a router's.
struct ProbeTarget {
  int link = 0;  // index
  MacAddress mac;
  IpAddress address;
  bool of_router = false;

  bool operator==(const ProbeTarget&) const = default;
};

// Another host that uses the address of a target, or is about to use it.
struct AddressConflict {
  ProbeTarget target;
  MacAddress other;
  MacAddress source;  // of the frame: where VFs may not spoof, its sender's, whatever `other` says

  bool operator==(const AddressConflict&) const = default;
};

// The MAC of another host that uses the address, as shown by a frame received on the target's link.
// `own`: MACs whose probes are ours.
std::optional<MacAddress> ConflictIn(std::span<const std::uint8_t> frame, const ProbeTarget& target,
                                     const std::vector<MacAddress>& own);

// At most one conflict per target, in the order of the targets. Ends before the budget does only when every
// target has one. A budget of zero or less: nothing is sent.
Result<std::vector<AddressConflict>> ProbeAddresses(const NetNs& ns, const std::vector<ProbeTarget>& targets,
                                                    std::chrono::milliseconds budget);

}  // namespace railhead

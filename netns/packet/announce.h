// ARP and neighbour advertisement packets, as bytes and sent.
//
// An announcement is a gratuitous ARP request or an unsolicited neighbour advertisement to all nodes. In the
// ARP request (RFC 5227 section 3) sender and target protocol address are the own address, and it goes to the
// Ethernet broadcast address. The advertisement (RFC 4861 section 7.2.6) has hop limit 255 and the target
// link-layer address option. A packet socket that is bound to the interface sends it. So it goes out by that
// NIC whatever the routes say; with VLAN set by the PF the NIC tags it.
// Threads: pure functions; sockets are opened by the caller's namespace handle.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

// Whole Ethernet frames.
std::vector<std::uint8_t> GratuitousArp(const MacAddress& mac, const IpAddress& address);
// `override_flag`: off while the address is optimistic (RFC 4429).
std::vector<std::uint8_t> UnsolicitedAdvertisement(const MacAddress& mac, const IpAddress& address,
                                                   bool override_flag = true);
// RFC 5227 probe: sender address 0.0.0.0.
std::vector<std::uint8_t> ArpProbe(const MacAddress& mac, const IpAddress& address);
// RFC 4862 section 5.4.2: solicitation for an address that the sender does not use
// yet, from :: to the solicited-node multicast address.
std::vector<std::uint8_t> NeighbourProbe(const MacAddress& mac, const IpAddress& address);
// The Ethernet address of that group (RFC 2464 section 7).
MacAddress SolicitedNodeMac(const IpAddress& address);

// One announcement for each address, from link `index` of `ns`.
Result<void> Announce(const NetNs& ns, int index, const MacAddress& mac,
                      const std::vector<IpAddress>& addresses);

// ARP packets and neighbour discovery messages out of received Ethernet frames.
//
// Any host may have sent the frames. A frame that is truncated, damaged or against the rules of its RFC is
// nullopt, never a read outside the view.
// Threads: pure functions.
// Source: RFC 826; RFC 4861 sections 4.3, 4.4, 7.1.1 and 7.1.2 (the receiver's checks). Messages with
// extension headers are refused: no host sends those.

struct ArpPacket {
  bool reply = false;
  MacAddress ethernet_to;
  MacAddress sender_mac;
  IpAddress sender;  // 0.0.0.0: a probe (RFC 5227)
  IpAddress target;

  bool operator==(const ArpPacket&) const = default;
};
std::optional<ArpPacket> ParseArp(std::span<const std::uint8_t> frame);

struct NeighbourMessage {
  bool advertisement = false;  // else a solicitation
  MacAddress ethernet_from;
  IpAddress source;  // ::, in a solicitation: duplicate address detection
  IpAddress target;
  std::optional<MacAddress> target_mac;  // option of an advertisement

  bool operator==(const NeighbourMessage&) const = default;
};
std::optional<NeighbourMessage> ParseNeighbourMessage(std::span<const std::uint8_t> frame);

}  // namespace railhead

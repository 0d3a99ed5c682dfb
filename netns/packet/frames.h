// ARP and neighbour discovery packets, as bytes.
//
// The gratuitous ARP request and the unsolicited advertisement are announcements to all nodes. In the ARP
// request (RFC 5227 section 3) sender and target protocol address are the own address, and it goes to the
// Ethernet broadcast address. The advertisement (RFC 4861 section 7.2.6) has hop limit 255 and the target
// link-layer address option.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "netns/base/addresses.h"

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
// RFC 4861 section 7.2.2: the question for the MAC of `address`, from `source` with its MAC.
std::vector<std::uint8_t> NeighbourSolicitation(const MacAddress& mac, const IpAddress& source,
                                                const IpAddress& address);
// The Ethernet address of that group (RFC 2464 section 7).
MacAddress SolicitedNodeMac(const IpAddress& address);

}  // namespace railhead

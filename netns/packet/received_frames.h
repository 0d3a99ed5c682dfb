// ARP packets and neighbour discovery messages out of received Ethernet frames.
//
// Any host may have sent the frames. A frame that is truncated, damaged or against the rules of its RFC is
// nullopt, never a read outside the view.
// Threads: pure functions.
// Source: RFC 826; RFC 4861 sections 4.3, 4.4, 7.1.1 and 7.1.2 (the receiver's checks). Messages with
// extension headers are refused: no host sends those.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "netns/base/addresses.h"

namespace railhead {

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

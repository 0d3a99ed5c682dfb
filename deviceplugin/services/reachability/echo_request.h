// EchoRequest: does an address answer an ICMP echo request ("ping")?
//
// The answer is an IP packet, sent to the MAC that the other end has for the asking address. The answer to an
// ARP probe goes to the MAC that the probe came from, and would not show a stale entry. Needs CAP_NET_RAW:
// unprivileged echo sockets are off in new namespaces (net.ipv4.ping_group_range).
// Threads: any. Errors: the kernel's refusals. Source: RFC 792; RFC 4443 section 4.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead::reachability {

// Sends two requests from `own`, an address in `ns`, only by interface `device`. true with the first answer,
// false after `limit`.
Result<bool> AnswersEcho(const NetNs& ns, const std::string& device, const IpAddress& own,
                         const IpAddress& other, std::chrono::milliseconds limit);

// An ICMP message without its IP header. The kernel computes the checksum of IPv6.
std::vector<std::uint8_t> EchoRequest(bool v4, std::uint16_t id, std::uint16_t sequence);
// Whether a packet of a raw socket answers a request of this id. IPv4 comes with its IP header, IPv6 without.
// Any host may send anything, so nothing is read beyond the view.
bool AnswersRequest(std::span<const std::uint8_t> packet, bool v4, std::uint16_t id);

}  // namespace railhead::reachability

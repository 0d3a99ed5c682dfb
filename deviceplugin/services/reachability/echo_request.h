// EchoRequest: does an address answer an ICMP echo request ("ping")?
//
// Its answer is an IP packet to whoever asked, by what the other end knows of that address: unlike an answer
// to an ARP probe, which goes to the MAC address that the probe came from.
// Needs CAP_NET_RAW: unprivileged echo sockets are off in new namespaces (net.ipv4.ping_group_range).
// Threads: any. Errors: what the kernel refused. Source: RFC 792; RFC 4443 section 4.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "netns/base/ip_address.h"
#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

// From `own`, an address in `ns`, by interface `device` alone. Two requests; true with the first answer,
// false after `limit`.
Result<bool> AnswersEcho(const NetNs& ns, const std::string& device, const IpAddress& own,
                         const IpAddress& other, std::chrono::milliseconds limit);

// An ICMP message without its IP header; IPv6's checksum is the kernel's work.
std::vector<std::uint8_t> EchoRequest(bool v4, std::uint16_t id, std::uint16_t sequence);
// Whether what a raw socket received answers a request of this id: IPv4 comes with its IP header, IPv6
// without. Anything may have been sent: nothing is read beyond the view.
bool AnswersRequest(std::span<const std::uint8_t> packet, bool v4, std::uint16_t id);

}  // namespace railhead

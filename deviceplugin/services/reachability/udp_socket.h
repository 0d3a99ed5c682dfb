// UDP sockets of stations and, for a moment, of pods.
//
// Packets are never fragmented and never smaller than asked for: what a link of the path does not carry
// is lost there, whatever the kernel has learnt of the path (IP_PMTUDISC_PROBE in include/uapi/linux/in.h).
// Threads: one at a time. Errors: what the kernel refused.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "netns/base/ip_address.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/ns/netns.h"

namespace railhead {

struct UdpEnd {
  IpAddress address;
  std::uint16_t port = 0;  // 0, of the own end: any

  auto operator<=>(const UdpEnd&) const = default;
};

// Non-blocking, in `ns`, by interface `device` alone. `traffic_class`: the byte of the IP header, with which
// all is sent.
Result<UniqueFd> OpenUdp(const NetNs& ns, const std::string& device, const UdpEnd& own, int traffic_class);

// A UdpEnd as the kernel's calls want it.
struct UdpSocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);

  UdpSocketAddress() = default;
  explicit UdpSocketAddress(const UdpEnd& end);
  [[nodiscard]] std::optional<UdpEnd> End() const;
  sockaddr* data() { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// What a socket is bound to.
UdpEnd OwnEnd(int socket);

}  // namespace railhead

// UDP sockets of probe endpoints, and of pods while these are probed; and the probes themselves.
//
// Packets are never fragmented and have the requested size. A link that cannot carry one drops it, whatever
// path MTU the kernel has learnt (IP_PMTUDISC_PROBE in include/uapi/linux/in.h).
// Threads: one at a time. Errors: the kernel's refusals.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/ns/netns.h"

namespace railhead::reachability {

struct UdpEnd {
  IpAddress address;
  std::uint16_t port = 0;  // of the own end, 0 means any

  auto operator<=>(const UdpEnd&) const = default;
};

// Non-blocking, in `ns`, only by interface `device`. `traffic_class`: the byte of the IP header of every
// packet.
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

// The address and port of the socket.
UdpEnd OwnEnd(int socket);

}  // namespace railhead::reachability

// UDP sockets of stations and, for a moment, of pods.
//
// Packets are never fragmented and never smaller than asked for: what a link of the path does not carry
// is lost there, whatever the kernel has learnt of the path (IP_PMTUDISC_PROBE in include/uapi/linux/in.h).
// Threads: one at a time. Errors: what the kernel refused.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/support/keys/shared_keys.h"
#include "netns/base/addresses.h"
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

// Volley: probes to many stations at once, and what came back within a limit.
//
// It sends a few at a time, so that no buffer of this node drops them, and takes answers meanwhile.
// Threads: one at a time; sockets are the caller's (udp_socket.h). Errors: kIo where poll fails; a packet
// that cannot be sent counts as one without an answer.

struct Shot {
  int socket = -1;
  UdpEnd to;
  std::uint64_t session = 0;
  std::size_t packet = 0;  // bytes with the IP header; 0: the smallest
  // Set by Fire().
  bool too_large = false;  // the own device does not take it
  std::optional<std::chrono::microseconds> rtt;
  std::uint32_t heard = 0;       // ProbeMessage's, with an answer
  std::uint32_t queue_pair = 0;  // the same
};

// Ends when all have an answer, or `limit` after the last was sent. With `keys` probes are signed, and
// answers count that are (CheckProbe); nullptr: there are none.
Result<void> Fire(std::vector<Shot>* shots, std::chrono::milliseconds limit,
                  const SharedKeys* keys = nullptr);

}  // namespace railhead

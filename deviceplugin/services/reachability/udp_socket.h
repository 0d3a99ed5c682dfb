// UDP sockets of stations and, for a moment, of pods.
//
// Packets are never fragmented and never smaller than asked for: what a link of the path does not carry
// is lost there, whatever the kernel has learnt of the path (IP_PMTUDISC_PROBE in include/uapi/linux/in.h).
// Threads: one at a time. Errors: what the kernel refused.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deviceplugin/support/keys/shared_keys.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/ns/netns.h"

namespace railhead::reachability {

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

// What stations send each other: payloads of UDP and of RDMA datagrams, in network order.
//
//    0  4  "RHrp"
//    4  1  version, 1
//    5  1  1: probe, 2: answer
//    6  2  zero
//    8  8  session: whose probes to whom these are; the answering end counts by it
//   16  8  token: which probe this is
//   24  4  answers: how many probes of the session have come in, this one included; 0: the station does not
//          count those of this sender, who is no peer of its; probes: zero
//   28  4  answers: the station's queue pair for datagrams (rdma_echo.h), 24 bits, or 0; probes: zero
//   32 32  where the nodes share keys: the signature of the 32 bytes before it and of both IP addresses
//   32  .  behind that, probes: zeros up to the size that is tried; answers: nothing
//
// The addresses are signed, too: a pod sees the signed probes that are sent from its own namespace, and could
// send them again in the name of a station. A station answers what is not signed without a signature, if its
// keys let it: so an answer is never larger than what it answers, and a station is no amplifier.
// Threads: pure functions. They come from anybody: what is no message is nullopt.

inline constexpr std::size_t kProbeHeader = 32;
inline constexpr std::size_t kSignedProbe = kProbeHeader + SharedKeys::kSignature;

struct ProbeMessage {
  bool answer = false;
  std::uint64_t session = 0;
  std::uint64_t token = 0;
  std::uint32_t heard = 0;
  std::uint32_t queue_pair = 0;

  bool operator==(const ProbeMessage&) const = default;
};

// `size`: of the payload; kProbeHeader at least.
std::vector<std::uint8_t> BytesOf(const ProbeMessage& message, std::size_t size = kProbeHeader);
std::optional<ProbeMessage> ParseProbe(std::span<const std::uint8_t> payload);

struct ProbeEnds {
  IpAddress from;
  IpAddress to;
};

// `size`: kSignedProbe at least.
std::vector<std::uint8_t> SignedBytesOf(const ProbeMessage& message, const SharedKeys& keys,
                                        const ProbeEnds& ends, std::size_t size = kSignedProbe);

struct CheckedProbe {
  ProbeMessage message;
  bool is_signed = false;
};
// Without keys, any message. With keys, one that is signed; one that is not only where they take it.
std::optional<CheckedProbe> CheckProbe(std::span<const std::uint8_t> payload, const SharedKeys* keys,
                                       const ProbeEnds& ends);

}  // namespace railhead::reachability

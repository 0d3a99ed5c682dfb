// UDP sockets of probe endpoints, and of pods while these are probed; and the probes themselves.
//
// Packets are never fragmented and have the requested size. A link that cannot carry one drops it, whatever
// path MTU the kernel has learnt (IP_PMTUDISC_PROBE in include/uapi/linux/in.h).
// Threads: one at a time. Errors: the kernel's refusals.
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

// SendProbes: sends probes to many endpoints and collects the answers that come within a limit.
//
// It sends a few at a time, so that no buffer of this node drops them, and receives answers between.
// Threads: one at a time; the caller owns the sockets. Errors: kIo where poll fails; a packet that cannot be
// sent counts as one without an answer.

struct Probe {
  int socket = -1;
  UdpEnd to;
  std::uint64_t session = 0;
  std::size_t packet = 0;  // bytes with the IP header; 0: the smallest
  // Set by SendProbes().
  bool too_large = false;  // the own device refuses it
  std::optional<std::chrono::microseconds> rtt;
  std::uint32_t heard = 0;       // ProbeMessage's, with an answer
  std::uint32_t queue_pair = 0;  // the same
};

// Ends when all probes have an answer, or `limit` after the last was sent. With `keys`, probes are signed and
// only signed answers count (CheckProbe). nullptr: no keys.
Result<void> SendProbes(std::vector<Probe>* probes, std::chrono::milliseconds limit,
                        const SharedKeys* keys = nullptr);

// The messages of probe endpoints: payloads of UDP and of RDMA datagrams, in network order.
//
//    0  4  "RHrp"
//    4  1  version, 1
//    5  1  1: probe, 2: answer
//    6  2  zero
//
//    8  8  session: the sender and its peer; the answering end counts by it
//   16  8  token: identifies the probe
//
//   24  4  answers: the count of the session's probes so far, or 0; probes: zero
//
//   28  4  answers: the endpoint's queue pair for datagrams (rdma_echo.h), 24 bits, or 0; probes: zero
//
//   32 32  with shared keys: the signature of the 32 bytes before it and of both IP addresses
//
//   32  .  behind that, probes: zeros up to the size to test; answers: nothing
//
// The count includes the answered probe. It is 0 for a sender that is not a peer of the endpoint.
//
// The addresses are signed, too. A pod sees the signed probes that its own namespace sends, and could send
// them again with another source address. An endpoint answers an unsigned probe without a signature, if its
// keys allow unsigned probes. So an answer is never larger than its probe, and cannot amplify an attack.
// Threads: pure functions. Any host may send anything: nullopt means that it is not a message.

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
// Without keys, any message. With keys, signed messages, and unsigned ones only where the keys allow them.
std::optional<CheckedProbe> CheckProbe(std::span<const std::uint8_t> payload, const SharedKeys* keys,
                                       const ProbeEnds& ends);

}  // namespace railhead::reachability

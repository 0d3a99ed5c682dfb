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
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "deviceplugin/support/keys/shared_keys.h"
#include "netns/base/addresses.h"

namespace railhead::reachability {

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

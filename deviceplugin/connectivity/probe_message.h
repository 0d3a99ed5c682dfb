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
//   32  .  probes: zeros up to the size that is tried; answers: nothing
//
// An answer is never larger than what it answers, so that a station is no amplifier.
// Threads: pure functions. They come from anybody: what is no message is nullopt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace railhead {

inline constexpr std::size_t kProbeHeader = 32;

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

}  // namespace railhead

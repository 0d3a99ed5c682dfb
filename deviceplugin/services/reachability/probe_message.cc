#include "deviceplugin/services/reachability/probe_message.h"

#include <algorithm>
#include <array>
#include <string>

namespace railhead {
namespace {

constexpr std::array<std::uint8_t, 5> kBegin = {'R', 'H', 'r', 'p', 1};
constexpr std::uint8_t kProbe = 1;
constexpr std::uint8_t kAnswer = 2;
constexpr std::size_t kSessionAt = 8;
constexpr std::size_t kTokenAt = 16;
constexpr std::size_t kHeardAt = 24;
constexpr std::size_t kQueuePairAt = 28;
constexpr std::uint32_t kQueuePairs = 0xffffff;

void PutBig(std::vector<std::uint8_t>& bytes, std::size_t at, std::size_t size, std::uint64_t value) {
  for (std::size_t i = size; i-- > 0; value >>= 8U) bytes[at + i] = static_cast<std::uint8_t>(value & 0xffU);
}

std::uint64_t GetBig(std::span<const std::uint8_t> bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value = (value << 8U) | bytes[at + i];
  return value;
}

std::string SignedPart(std::span<const std::uint8_t> payload, const ProbeEnds& ends) {
  std::string part(payload.begin(), payload.begin() + kProbeHeader);
  return part.append(ends.from.ToString()).append("\n").append(ends.to.ToString());
}

}  // namespace

std::vector<std::uint8_t> BytesOf(const ProbeMessage& message, std::size_t size) {
  std::vector<std::uint8_t> bytes(std::max(size, kProbeHeader));
  std::copy(kBegin.begin(), kBegin.end(), bytes.begin());
  bytes[kBegin.size()] = message.answer ? kAnswer : kProbe;
  PutBig(bytes, kSessionAt, 8, message.session);
  PutBig(bytes, kTokenAt, 8, message.token);
  PutBig(bytes, kHeardAt, 4, message.heard);
  PutBig(bytes, kQueuePairAt, 4, message.queue_pair);
  return bytes;
}

std::optional<ProbeMessage> ParseProbe(std::span<const std::uint8_t> payload) {
  if (payload.size() < kProbeHeader || !std::equal(kBegin.begin(), kBegin.end(), payload.begin()))
    return std::nullopt;
  const std::uint8_t kind = payload[kBegin.size()];
  if (kind != kProbe && kind != kAnswer) return std::nullopt;
  ProbeMessage message;
  message.answer = kind == kAnswer;
  message.session = GetBig(payload, kSessionAt, 8);
  message.token = GetBig(payload, kTokenAt, 8);
  message.heard = static_cast<std::uint32_t>(GetBig(payload, kHeardAt, 4));
  message.queue_pair = static_cast<std::uint32_t>(GetBig(payload, kQueuePairAt, 4)) & kQueuePairs;
  return message;
}

std::vector<std::uint8_t> SignedBytesOf(const ProbeMessage& message, const SharedKeys& keys,
                                        const ProbeEnds& ends, std::size_t size) {
  auto bytes = BytesOf(message, std::max(size, kSignedProbe));
  const auto signature = keys.Sign(SignedPart(bytes, ends));
  std::copy(signature.begin(), signature.end(), bytes.begin() + kProbeHeader);
  return bytes;
}

std::optional<CheckedProbe> CheckProbe(std::span<const std::uint8_t> payload, const SharedKeys* keys,
                                       const ProbeEnds& ends) {
  const auto message = ParseProbe(payload);
  if (!message) return std::nullopt;
  if (keys == nullptr) return CheckedProbe{*message, false};
  const bool is_signed =
      payload.size() >= kSignedProbe &&
      keys->Verify(SignedPart(payload, ends), payload.subspan(kProbeHeader, SharedKeys::kSignature));
  if (!is_signed && !keys->takes_unsigned()) return std::nullopt;
  return CheckedProbe{*message, is_signed};
}

}  // namespace railhead

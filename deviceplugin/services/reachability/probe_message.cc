#include "deviceplugin/services/reachability/probe_message.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "netns/base/bytes.h"

namespace railhead::reachability {
namespace {

constexpr std::string_view kBegin = "RHrp\x01";
constexpr std::uint8_t kProbe = 1;
constexpr std::uint8_t kAnswer = 2;
constexpr std::uint16_t kReserved = 0;
constexpr std::uint32_t kQueuePairs = 0xffffff;

std::string SignedPart(std::span<const std::uint8_t> payload, const ProbeEnds& ends) {
  std::string part(payload.begin(), payload.begin() + kProbeHeader);
  return part.append(ends.from.ToString()).append("\n").append(ends.to.ToString());
}

}  // namespace

std::vector<std::uint8_t> BytesOf(const ProbeMessage& message, std::size_t size) {
  bytes::Writer header;
  header.PutRaw(kBegin).Put(message.answer ? kAnswer : kProbe).Put(kReserved);
  header.Put(message.session).Put(message.token).Put(message.heard).Put(message.queue_pair);
  std::vector<std::uint8_t> bytes(header.bytes().begin(), header.bytes().end());
  bytes.resize(std::max(size, kProbeHeader));
  return bytes;
}

std::optional<ProbeMessage> ParseProbe(std::span<const std::uint8_t> payload) {
  if (payload.size() < kProbeHeader) return std::nullopt;
  bytes::Reader from({reinterpret_cast<const char*>(payload.data()), payload.size()});
  if (from.Take(kBegin.size()) != kBegin) return std::nullopt;
  const auto kind = from.Number<std::uint8_t>();
  if (kind != kProbe && kind != kAnswer) return std::nullopt;
  (void)from.Take(sizeof(kReserved));
  ProbeMessage message;
  message.answer = kind == kAnswer;
  message.session = from.Number();
  message.token = from.Number();
  message.heard = from.Number<std::uint32_t>();
  message.queue_pair = from.Number<std::uint32_t>() & kQueuePairs;
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

}  // namespace railhead::reachability

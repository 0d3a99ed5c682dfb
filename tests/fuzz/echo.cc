// What a raw ICMP socket receives while it waits for an echo reply: packets from any host of the rail. The
// first byte says which family it is, two more the number of the request.
#include <cstdint>
#include <span>
#include <vector>

#include "deviceplugin/services/reachability/echo_request.h"
#include "tests/fuzz/fuzz.h"

namespace railhead::fuzz {
namespace {

constexpr std::uint8_t kEchoReply = 0;
constexpr std::uint8_t kEchoReplyV6 = 129;

// What the other host makes of a request. `header`: the packet's IPv4 header; IPv6 sockets do not get theirs.
std::vector<std::uint8_t> ReplyTo(bool v4, std::uint16_t id, std::span<const std::uint8_t> header) {
  std::vector<std::uint8_t> message = reachability::EchoRequest(v4, id, 1);
  message[0] = v4 ? kEchoReply : kEchoReplyV6;
  if (v4) message.insert(message.begin(), header.begin(), header.end());
  return message;
}

void Read(std::span<const std::uint8_t> input) {
  if (input.size() < 3) return;
  const bool v4 = (input[0] & 1U) == 0;
  const auto id = static_cast<std::uint16_t>(input[1] << 8U | input[2]);
  const auto packet = input.subspan(3);
  if (reachability::AnswersRequest(packet, v4, id)) {
    Require(packet.size() >= 8, "a reply has its header");
    Require(!reachability::AnswersRequest(packet, v4, static_cast<std::uint16_t>(id + 1)),
            "a reply answers one request");
  }
  const std::size_t length = packet.empty() ? 0 : std::size_t{4} * (packet[0] & 0x0fU);
  if (v4 && (packet.empty() || packet.size() < length)) return;
  const auto reply = ReplyTo(v4, id, packet.first(v4 ? length : 0));
  if (v4 && length == 0) return;
  Require(reachability::AnswersRequest(reply, v4, id), "the reply to a request answers it");
  for (std::size_t size = 0; size < reply.size(); ++size)
    Require(!reachability::AnswersRequest(std::span(reply).first(size), v4, id),
            "half a reply answers nothing");
}

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  railhead::fuzz::Read({data, size});
  return 0;
}

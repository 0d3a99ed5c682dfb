// What railctl rdma-test receives over its connection: frames from any process that connects.
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <variant>

#include "deviceplugin/tools/rdma_test/channel.h"
#include "deviceplugin/tools/rdma_test/wire_protocol.h"
#include "tests/fuzz/fuzz.h"

namespace railhead::rdma_test {
namespace {

using fuzz::Require;

// The buffer of the largest test that is allowed.
constexpr std::uint64_t kLargestBuffer = std::uint64_t{kMaxSize} + kMailBytes;

void CheckBounds(const Hello& hello) {
  if (!CheckHello(hello)) return;
  Require(hello.size >= kMinSize && hello.size <= kMaxSize, "a size that can be registered");
  Require(hello.depth > 0 && hello.depth <= kMaxDepth, "a queue that can be made");
  Require(hello.seconds > 0 && hello.seconds <= kMaxSeconds, "a run that ends");
  Require(hello.timeout > 0 && hello.timeout <= kMaxTimeout, "a retry that comes");
  Require(!hello.gid.IsV4() && !hello.gid.IsUnspecified(), "a GID of 16 bytes");
}

void CheckBounds(const Endpoint& endpoint) {
  const IpAddress own = *IpAddress::Parse("::ffff:10.0.0.1");
  if (!CheckEndpoint(endpoint, own, kLargestBuffer)) return;
  const QueuePairAddress& pair = endpoint.queue_pair;
  Require(pair.address + kLargestBuffer > pair.address, "a buffer that does not wrap around");
  Require(pair.number < (1U << 24U) && pair.psn < (1U << 24U), "numbers of 24 bits");
  Require(pair.gid.Masked(96) == own.Masked(96), "a GID of our family");
}

void CheckBounds(const Failure& failure) {
  Require(IsFromPeer(ErrorOf(failure)), "what is told is not what was seen");
}

template <typename Other>
void CheckBounds(const Other&) {}

// Splits a stream as Channel does, but without one. Returns the number of messages.
std::size_t CheckFrames(std::string_view stream) {
  for (std::size_t count = 0;; ++count) {
    const auto header = DecodeHeader(stream.substr(0, kFrameHeader));
    // A sealed frame needs a key, which the fuzzer does not have.
    if (!header || header->sealed || stream.size() < kFrameHeader + header->length) return count;
    Require(header->length <= kMaxPayload, "a frame has its limit");
    const std::string_view frame = stream.substr(0, kFrameHeader + header->length);
    const auto message = DecodePayload(*header, frame.substr(kFrameHeader));
    if (!message) return count;
    Require(EncodeMessage(*message) == frame, "what was understood is said in the same bytes");
    std::visit([](const auto& one) { CheckBounds(one); }, *message);
    if (std::holds_alternative<Failure>(*message)) return count;
    stream.remove_prefix(frame.size());
  }
}

// The whole input has arrived and the peer has closed, so that no call may wait.
std::size_t Hear(const std::string& stream) {
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "there are sockets");
  const Channel channel{UniqueFd(ends[0])};
  {
    const UniqueFd far(ends[1]);
    Require(send(far.get(), stream.data(), stream.size(), 0) == static_cast<ssize_t>(stream.size()),
            "a socket takes an input");
  }
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (std::size_t count = 0;; ++count) {
    // After a failure from the peer, no more messages follow.
    if (!channel.CheckPeer()) return count;
    const auto message = channel.Receive(limit);
    if (message) continue;
    Require(message.error().code != ErrorCode::kTimeout, "who has gone is not waited for");
    return count;
  }
}

}  // namespace
}  // namespace railhead::rdma_test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string stream = railhead::fuzz::TextOf(data, size);
  railhead::fuzz::Require(railhead::rdma_test::Hear(stream) == railhead::rdma_test::CheckFrames(stream),
                          "a connection says what its bytes say");
  return 0;
}

// The protocol between the two ends of a test.
//
// A frame begins with 12 bytes, big endian: "RHRT", version (2), kind (2), length of the payload (4). The
// fields of that kind follow, in the order of the structures below. Text has its length (2) before it. Both
// ends check kinds, lengths, ranges, and that no bytes are left over. The connection is not encrypted, and
// without keys not authenticated. A peer gets write access to one buffer that exists for the test and holds
// nothing. Listen on the cluster network only.
//
// The course: hello ->, <- endpoint, endpoint ->, <- ready; then for each run: run ->, <- ready,
// (verbs), done ->; end -> closes. Either end may say error at any time and then closes.
// Threads: pure functions. Errors: kMalformed; kUnsupported for another version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "netns/base/result.h"
#include "netns/verbs/queue_pair.h"

namespace railhead::rdma_test {

inline constexpr std::uint16_t kProtocolVersion = 1;
inline constexpr std::uint16_t kSealedVersion = 2;  // the same, with a seal behind the payload
inline constexpr std::size_t kSealNonce = 16;
inline constexpr std::size_t kFrameSeal = kSealNonce + 32;
inline constexpr std::size_t kFrameHeader = 12;
inline constexpr std::size_t kMaxPayload = 4096;

inline constexpr std::uint32_t kMinSize = 8;
inline constexpr std::uint32_t kMaxSize = std::uint32_t{1} << 30;
inline constexpr int kMaxDepth = 4096;
inline constexpr int kMaxSeconds = 3600;
inline constexpr int kMaxServiceLevel = 15;  // RoCE uses the lower three bits
inline constexpr int kMaxTimeout = 22;       // 17 s; NCCL users go as far
// The buffer's last part, for the ping-pong messages.
inline constexpr std::uint32_t kMailBytes = 8192;

// The request for the whole test, from the starting end.
struct Hello {
  std::string rail;        // may be empty
  IpAddress gid;           // the starting end's
  std::uint32_t size = 0;  // bytes of one write of the bandwidth run
  std::uint16_t depth = 0;
  std::uint16_t seconds = 0;  // of each run
  std::uint8_t timeout = 0;   // of the queue pairs
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
  bool operator==(const Hello&) const = default;
};

struct Endpoint {
  QueuePairAddress queue_pair;
  std::string device;
  std::uint8_t gid_index = 0;
  bool operator==(const Endpoint&) const = default;
};

enum class RunKind : std::uint8_t { kWriteBandwidth = 1, kWriteLatency = 2, kSendLatency = 3 };

struct Run {
  RunKind kind = RunKind::kWriteBandwidth;
  bool operator==(const Run&) const = default;
};
struct Ready {
  bool operator==(const Ready&) const = default;
};
struct Done {
  bool operator==(const Done&) const = default;
};
struct End {
  bool operator==(const End&) const = default;
};
// The reason why the other end stopped.
struct Failure {
  std::uint8_t code = 0;  // an ErrorCode
  std::string message;
  std::string hint;
  bool operator==(const Failure&) const = default;
};

using Message = std::variant<Hello, Endpoint, Run, Ready, Done, End, Failure>;

std::string EncodeMessage(const Message& message);

// The frame with the version and length of a sealed frame. The caller appends the seal.
std::string AsSealedFrame(std::string frame);

struct FrameHeader {
  std::uint16_t kind = 0;
  std::uint32_t length = 0;  // with the seal
  bool sealed = false;
};
// `bytes` are kFrameHeader bytes.
Result<FrameHeader> DecodeHeader(std::string_view bytes);
Result<Message> DecodePayload(const FrameHeader& header, std::string_view payload);
bool IsFailure(const FrameHeader& header);

// The checks of each end before it uses the other end's values.
Result<void> CheckHello(const Hello& hello);
// `bytes`: the required size of the buffer.
Result<void> CheckEndpoint(const Endpoint& endpoint, const IpAddress& own_gid, std::uint64_t bytes);

Failure FailureOf(const Error& error);
// The message states that the error is the other end's.
Error ErrorOf(const Failure& failure);
// Whether the error is the other end's, which has the details.
bool IsFromPeer(const Error& error);

}  // namespace railhead::rdma_test

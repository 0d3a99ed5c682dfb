// What the two ends of a test tell each other, as bytes.
//
// A frame is 12 bytes, big endian: "RHRT", version (2), kind (2), length of what follows (4); then
// the fields of that kind, in the order in which they stand below; text has its length (2) before
// it. Both ends check all of it: kinds, lengths, ranges, and that nothing is left over.
// The connection is not encrypted, and without keys (frame_seal.h) not authenticated. A peer gets write
// access to one buffer that exists for the test and holds nothing. Listen on the cluster network only.
//
// The course: hello ->, <- endpoint, endpoint ->, <- ready; then for each run: run ->, <- ready,
// (verbs), done ->; end -> closes. Either end may say error at any time and then closes.
// Threads: pure functions. Errors: kMalformed; kUnsupported for another version.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "netns/base/error.h"
#include "netns/base/result.h"
#include "netns/verbs/queue_pair.h"

namespace railhead::rdmatest {

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

// Of the whole test; from who starts it.
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
// Why the other end goes no further.
struct Trouble {
  std::uint8_t code = 0;  // an ErrorCode
  std::string message;
  std::string hint;
  bool operator==(const Trouble&) const = default;
};

using Message = std::variant<Hello, Endpoint, Run, Ready, Done, End, Trouble>;

std::string EncodeMessage(const Message& message);

// The frame with the version and length that it has with a seal, which is to be appended.
std::string AsSealedFrame(std::string frame);

struct FrameHeader {
  std::uint16_t kind = 0;
  std::uint32_t length = 0;  // with the seal
  bool sealed = false;
};
// `bytes` are kFrameHeader bytes.
Result<FrameHeader> DecodeHeader(std::string_view bytes);
Result<Message> DecodePayload(const FrameHeader& header, std::string_view payload);
bool IsTrouble(const FrameHeader& header);

// What each end checks before it uses what it was told.
Result<void> CheckHello(const Hello& hello);
// `bytes`: how large the buffer has to be.
Result<void> CheckEndpoint(const Endpoint& endpoint, const IpAddress& own_gid, std::uint64_t bytes);

Trouble TroubleOf(const Error& error);
// Says that it is the other end's.
Error ErrorOf(const Trouble& trouble);
// Whether it only tells of what happened at the other end, which then knows better.
bool IsSecondHand(const Error& error);

}  // namespace railhead::rdmatest

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

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "deviceplugin/support/keys/shared_keys.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
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

// Messages over a connected stream socket, to the other end of a test.
//
// Ownership: borrows nothing, keeps the descriptor. Threads: one.
// Errors: kTimeout at the deadline, kIo when the other end has gone, kMalformed;
// a received Failure is an error itself.

// FrameSeal: signatures of one end's frames, and checks of the other end's, with keys that both share.
//
// A sealed frame has version 2. Its payload is followed by the sender's nonce (16 bytes) and a signature
// (32). The signature covers the sender's role, the number of its earlier frames, the receiver's nonce, the
// sender's nonce, and the frame. So no frame fits into another connection or another place. In its hello, the
// starting end does not know the other's nonce. Neither may an end that only reports a failure. Both sign
// these frames with zeros in its place. An attacker who replays a recorded hello gets its answer, but cannot
// go on. Nothing is encrypted.
// Ownership: shares the keys. Threads: one. Errors: kPermission: no or another key.

enum class EndRole : std::uint8_t { kStarting, kAnswering };

class FrameSeal {
 public:
  // `keys` may be nullptr: frames are not sealed.
  FrameSeal(std::shared_ptr<const SharedKeys> keys, EndRole role);

  // `frame`: of EncodeMessage().
  std::string Seal(std::string frame);
  // The payload without its seal. `header`: its bytes.
  Result<std::string> Open(std::string_view header, std::string_view payload);

 private:
  using Nonce = std::array<char, kSealNonce>;
  [[nodiscard]] std::string SignedText(EndRole sender, std::uint64_t count, const Nonce& receiver,
                                       const Nonce& sent_by, std::string_view frame) const;

  const std::shared_ptr<const SharedKeys> keys_;
  const EndRole role_;
  Nonce own_{};
  Nonce other_{};  // zeros: unknown
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

using TimePoint = std::chrono::steady_clock::time_point;

class Channel {
 public:
  explicit Channel(UniqueFd fd) : Channel(std::move(fd), nullptr, EndRole::kStarting) {}
  // With `keys`, each frame is signed, and must be.
  Channel(UniqueFd fd, std::shared_ptr<const SharedKeys> keys, EndRole role)
      : fd_(std::move(fd)), seal_(std::make_unique<FrameSeal>(std::move(keys), role)) {}

  [[nodiscard]] Result<void> Send(const Message& message, TimePoint deadline) const;
  [[nodiscard]] Result<Message> Receive(TimePoint deadline) const;

  // Checks the other end without waiting: an error once it has closed the connection or sent a failure. Any
  // other message stays unread.
  [[nodiscard]] Result<void> CheckPeer() const;

  // The next message, which must be of this kind.
  template <typename Kind>
  [[nodiscard]] Result<Kind> Expect(TimePoint deadline) const {
    Message message = RH_TRY(Receive(deadline));
    if (Kind* wanted = std::get_if<Kind>(&message)) return std::move(*wanted);
    return Unexpected(message);
  }

 private:
  [[nodiscard]] Result<std::string> ReceiveBytes(std::size_t size, TimePoint deadline) const;
  [[nodiscard]] Result<void> Wait(short events, TimePoint deadline) const;
  static tl::unexpected<Error> Unexpected(const Message& message);

  UniqueFd fd_;
  std::unique_ptr<FrameSeal> seal_;
};

}  // namespace railhead::rdma_test

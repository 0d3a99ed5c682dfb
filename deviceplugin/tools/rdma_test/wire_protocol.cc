#include "deviceplugin/tools/rdma_test/wire_protocol.h"

#include <sys/socket.h>

#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "netns/base/bytes.h"
#include "netns/gid/gid_table.h"

namespace railhead::rdma_test {
namespace {

using railhead::bytes::Reader;
using railhead::bytes::Writer;

constexpr std::string_view kMagic = "RHRT";
constexpr std::string_view kOtherEnd = "the other end";
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxText = 1024;
constexpr std::uint32_t k24Bits = 0xffffff;

// The kinds on the wire; the order is the variant's.
enum class Kind : std::uint16_t { kHello = 1, kEndpoint, kRun, kReady, kDone, kEnd, kFailure };

void Put(Writer& to, const Hello& hello) {
  to.PutText<std::uint16_t>(hello.rail);
  to.PutRaw(GidOf(hello.gid));
  to.Put(hello.size);
  to.Put(hello.depth);
  to.Put(hello.seconds);
  to.Put(hello.timeout);
  to.Put(hello.traffic_class);
  to.Put(hello.service_level);
}

void Put(Writer& to, const Endpoint& endpoint) {
  const QueuePairAddress& pair = endpoint.queue_pair;
  to.Put(pair.number);
  to.Put(pair.psn);
  to.PutRaw(GidOf(pair.gid));
  to.Put(pair.key);
  to.Put(pair.address);
  to.Put(pair.bytes);
  to.Put(static_cast<std::uint16_t>(pair.mtu));
  to.PutText<std::uint16_t>(endpoint.device);
  to.Put(endpoint.gid_index);
}

void Put(Writer& to, const Run& run) {
  to.Put(static_cast<std::uint8_t>(run.kind));
}

void Put(Writer& to, const Failure& failure) {
  to.Put(failure.code);
  to.PutText<std::uint16_t>(failure.message.substr(0, kMaxText));
  to.PutText<std::uint16_t>(failure.hint.substr(0, kMaxText));
}

template <typename Empty>
void Put(Writer&, const Empty&) {}

Message GetHello(Reader& from) {
  Hello hello;
  hello.rail = from.Text<std::uint16_t>(kMaxName);
  hello.gid = from.Address(kGidSize);
  hello.size = from.Number<std::uint32_t>();
  hello.depth = from.Number<std::uint16_t>();
  hello.seconds = from.Number<std::uint16_t>();
  hello.timeout = from.Number<std::uint8_t>();
  hello.traffic_class = from.Number<std::uint8_t>();
  hello.service_level = from.Number<std::uint8_t>();
  return hello;
}

Message GetEndpoint(Reader& from) {
  Endpoint endpoint;
  QueuePairAddress& pair = endpoint.queue_pair;
  pair.number = from.Number<std::uint32_t>();
  pair.psn = from.Number<std::uint32_t>();
  pair.gid = from.Address(kGidSize);
  pair.key = from.Number<std::uint32_t>();
  pair.address = from.Number<std::uint64_t>();
  pair.bytes = from.Number<std::uint64_t>();
  pair.mtu = from.Number<std::uint16_t>();
  endpoint.device = from.Text<std::uint16_t>(kMaxName);
  endpoint.gid_index = from.Number<std::uint8_t>();
  return endpoint;
}

Message GetFailure(Reader& from) {
  Failure failure;
  failure.code = from.Number<std::uint8_t>();
  failure.message = from.Text<std::uint16_t>(kMaxText);
  failure.hint = from.Text<std::uint16_t>(kMaxText);
  return failure;
}

std::optional<Message> Get(Kind kind, Reader& from) {
  switch (kind) {
    case Kind::kHello:
      return GetHello(from);
    case Kind::kEndpoint:
      return GetEndpoint(from);
    case Kind::kRun:
      return Run{static_cast<RunKind>(from.Number<std::uint8_t>())};
    case Kind::kReady:
      return Ready{};
    case Kind::kDone:
      return Done{};
    case Kind::kEnd:
      return End{};
    case Kind::kFailure:
      return GetFailure(from);
  }
  return std::nullopt;
}

tl::unexpected<Error> Malformed(const std::string& why) {
  return Fail(ErrorCode::kMalformed, "the other end of the test sent " + why,
              "check that railctl rdma-test listens there");
}

bool IsUsableGid(const IpAddress& gid) {
  return gid.IsV6() && !gid.IsUnspecified() && !gid.IsMulticast();
}

bool IsV4Mapped(const IpAddress& gid) {
  return gid.Masked(96) == IpAddress::Parse("::ffff:0.0.0.0");
}

}  // namespace

std::string EncodeMessage(const Message& message) {
  Writer payload;
  std::visit([&payload](const auto& one) { Put(payload, one); }, message);
  return Writer()
      .PutRaw(kMagic)
      .Put(kProtocolVersion)
      .Put(static_cast<std::uint16_t>(message.index() + 1))
      .Put(static_cast<std::uint32_t>(payload.bytes().size()))
      .PutRaw(payload.bytes())
      .bytes();
}

std::string AsSealedFrame(std::string frame) {
  const std::string_view plain = frame;
  Reader from(plain.substr(kMagic.size(), kFrameHeader - kMagic.size()));
  (void)from.Number<std::uint16_t>();
  Writer header;
  header.PutRaw(kMagic).Put(kSealedVersion);
  header.Put(from.Number<std::uint16_t>());
  header.Put(static_cast<std::uint32_t>(from.Number<std::uint32_t>() + kFrameSeal));
  return frame.replace(0, kFrameHeader, header.bytes());
}

Result<FrameHeader> DecodeHeader(std::string_view bytes) {
  if (bytes.size() != kFrameHeader || !bytes.starts_with(kMagic)) return Malformed("an invalid frame header");
  Reader from(bytes.substr(kMagic.size()));
  const auto version = from.Number<std::uint16_t>();
  if (version != kProtocolVersion && version != kSealedVersion) {
    return Fail(ErrorCode::kUnsupported,
                "the other end of the test speaks version " + std::to_string(version) + ", this one " +
                    std::to_string(kProtocolVersion),
                "use the same railctl on both nodes");
  }
  FrameHeader header;
  header.sealed = version == kSealedVersion;
  header.kind = from.Number<std::uint16_t>();
  header.length = from.Number<std::uint32_t>();
  if (header.length > kMaxPayload + (header.sealed ? kFrameSeal : 0))
    return Malformed("a frame of " + std::to_string(header.length) + " bytes");
  return header;
}

Result<Message> DecodePayload(const FrameHeader& header, std::string_view payload) {
  Reader from(payload);
  auto message = Get(static_cast<Kind>(header.kind), from);
  if (!message) return Malformed("a frame of unknown kind " + std::to_string(header.kind));
  if (payload.size() + (header.sealed ? kFrameSeal : 0) != header.length || !from.Done()) {
    return Malformed("a frame of kind " + std::to_string(header.kind) + " with wrong lengths");
  }
  if (const Run* run = std::get_if<Run>(&*message);
      run != nullptr && (run->kind < RunKind::kWriteBandwidth || run->kind > RunKind::kSendLatency)) {
    return Malformed("an unknown kind of run");
  }
  return *std::move(message);
}

bool IsFailure(const FrameHeader& header) {
  return static_cast<Kind>(header.kind) == Kind::kFailure;
}

Result<void> CheckHello(const Hello& hello) {
  if (!IsUsableGid(hello.gid)) return Malformed("a hello with GID " + hello.gid.ToString());
  if (hello.size < kMinSize || hello.size > kMaxSize) {
    return Malformed("a size of " + std::to_string(hello.size) + " bytes");
  }
  if (hello.depth < 1 || hello.depth > kMaxDepth)
    return Malformed("a depth of " + std::to_string(hello.depth));
  if (hello.seconds < 1 || hello.seconds > kMaxSeconds) {
    return Malformed("a duration of " + std::to_string(hello.seconds) + " s");
  }
  if (hello.timeout < 1 || hello.timeout > kMaxTimeout) {
    return Malformed("a queue pair timeout of " + std::to_string(hello.timeout));
  }
  if (hello.service_level > kMaxServiceLevel)
    return Malformed("a service level of " + std::to_string(hello.service_level));
  return {};
}

Result<void> CheckEndpoint(const Endpoint& endpoint, const IpAddress& own_gid, std::uint64_t bytes) {
  const QueuePairAddress& pair = endpoint.queue_pair;
  if (pair.number == 0 || pair.number > k24Bits)
    return Malformed("queue pair " + std::to_string(pair.number));
  if (pair.psn > k24Bits) return Malformed("packet number " + std::to_string(pair.psn));
  if (!IsUsableGid(pair.gid)) return Malformed("GID " + pair.gid.ToString());
  if (pair.mtu < 256 || pair.mtu > 4096) return Malformed("an MTU of " + std::to_string(pair.mtu));
  if (pair.bytes < bytes || pair.address > std::numeric_limits<std::uint64_t>::max() - pair.bytes) {
    return Malformed("a buffer of " + std::to_string(pair.bytes) + " bytes");
  }
  if (IsV4Mapped(pair.gid) != IsV4Mapped(own_gid)) {
    return Fail(ErrorCode::kConflict,
                "one end has GID " + own_gid.ToString() + ", the other one " + pair.gid.ToString() +
                    ": IPv4 and IPv6 cannot reach each other",
                "choose entries of one family with --gid-index");
  }
  return {};
}

Failure FailureOf(const Error& error) {
  return {static_cast<std::uint8_t>(error.code), error.message, error.hint};
}

Error ErrorOf(const Failure& failure) {
  const bool known = failure.code <= static_cast<std::uint8_t>(ErrorCode::kLimited);
  return {known ? static_cast<ErrorCode>(failure.code) : ErrorCode::kInternal,
          std::string(kOtherEnd) + ": " + failure.message, failure.hint, 0};
}

bool IsFromPeer(const Error& error) {
  return error.message.starts_with(kOtherEnd);
}

}  // namespace railhead::rdma_test

#include "deviceplugin/tools/rdma_test/wire_protocol.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <random>
#include <span>
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

namespace {

constexpr std::chrono::milliseconds kLongestPoll{60'000};
// For the rest of a message whose beginning has come.
constexpr std::chrono::seconds kFailureLimit{1};

tl::unexpected<Error> Gone() {
  return Fail(ErrorCode::kIo, "the other end of the test has gone", "see the output of railctl there");
}

}  // namespace

Result<void> Channel::Wait(short events, TimePoint deadline) const {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{fd_.get(), events, 0};
    const auto limit = std::clamp(left, std::chrono::milliseconds(0), kLongestPoll);
    const int ready = poll(&waiting, 1, static_cast<int>(limit.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return FailSys(errno, "waiting for the other end of the test");
    if (ready == 0 && left <= limit) {
      return Fail(ErrorCode::kTimeout, "the other end of the test did not answer in time",
                  "it may still wait for its device: see the output of railctl there");
    }
  }
}

Result<void> Channel::Send(const Message& message, TimePoint deadline) const {
  const std::string bytes = seal_->Seal(EncodeMessage(message));
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t sent = send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      RH_TRY(Wait(POLLOUT, deadline));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return Gone();
    } else if (errno != EINTR) {
      return FailSys(errno, "sending to the other end of the test");
    }
  }
  return {};
}

Result<std::string> Channel::ReceiveBytes(std::size_t size, TimePoint deadline) const {
  std::string bytes(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    RH_TRY(Wait(POLLIN, deadline));
    const ssize_t got = recv(fd_.get(), bytes.data() + have, size - have, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return Gone();
    if (got > 0) have += static_cast<std::size_t>(got);
    if (got < 0 && errno != EINTR && errno != EAGAIN)
      return FailSys(errno, "receiving from the other end of the test");
  }
  return bytes;
}

Result<Message> Channel::Receive(TimePoint deadline) const {
  const std::string first = RH_TRY(ReceiveBytes(kFrameHeader, deadline));
  const FrameHeader header = RH_TRY(DecodeHeader(first));
  const std::string sealed = RH_TRY(ReceiveBytes(header.length, deadline));
  const std::string payload = RH_TRY(seal_->Open(first, sealed));
  Message message = RH_TRY(DecodePayload(header, payload));
  if (const Failure* failure = std::get_if<Failure>(&message)) return Fail(ErrorOf(*failure));
  return message;
}

Result<void> Channel::CheckPeer() const {
  std::string first(kFrameHeader, '\0');
  const ssize_t got = recv(fd_.get(), first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got < 0 && errno != ECONNRESET) return FailSys(errno, "checking the other end of the test");
  if (got <= 0) return Gone();
  // Half a header: the rest is under way, or never comes: the next read or the run's limit finds out.
  if (static_cast<std::size_t>(got) < first.size()) return {};
  const FrameHeader header = RH_TRY(DecodeHeader(first));
  if (!IsFailure(header)) return {};
  RH_TRY(Receive(std::chrono::steady_clock::now() + kFailureLimit));
  return {};
}

tl::unexpected<Error> Channel::Unexpected(const Message& message) {
  return Fail(ErrorCode::kMalformed,
              "the other end of the test sent a frame of kind " + std::to_string(message.index() + 1) +
                  " out of turn",
              "use the same version of railctl on both nodes");
}

namespace {

constexpr const char* kKeyHint = "--key-file with the same keys on both nodes: docs/operate/rdma-test.md";

EndRole Other(EndRole role) {
  return role == EndRole::kStarting ? EndRole::kAnswering : EndRole::kStarting;
}

}  // namespace

FrameSeal::FrameSeal(std::shared_ptr<const SharedKeys> keys, EndRole role)
    : keys_(std::move(keys)), role_(role) {
  std::random_device random;
  for (char& byte : own_) byte = static_cast<char>(random());
}

std::string FrameSeal::SignedText(EndRole sender, std::uint64_t count, const Nonce& receiver,
                                  const Nonce& sent_by, std::string_view frame) const {
  bytes::Writer text;
  text.Put(static_cast<std::uint8_t>(sender)).Put(count);
  text.PutRaw({receiver.data(), receiver.size()}).PutRaw({sent_by.data(), sent_by.size()}).PutRaw(frame);
  return text.bytes();
}

std::string FrameSeal::Seal(std::string frame) {
  if (!keys_) return frame;
  frame = AsSealedFrame(std::move(frame));
  const auto signature = keys_->Sign(SignedText(role_, sent_++, other_, own_, frame));
  return frame.append(own_.begin(), own_.end()).append(signature.begin(), signature.end());
}

Result<std::string> FrameSeal::Open(std::string_view header, std::string_view payload) {
  const FrameHeader facts = RH_TRY(DecodeHeader(header));
  if (!keys_ && !facts.sealed) return std::string(payload);
  if (!keys_)
    return Fail(ErrorCode::kPermission, "the other end of the test has a key, this one none", kKeyHint);
  if (!facts.sealed) return Fail(ErrorCode::kPermission, "the other end of the test has no key", kKeyHint);
  if (payload.size() < kFrameSeal)
    return Fail(ErrorCode::kMalformed, "the other end of the test sent a frame without its seal", kKeyHint);
  const std::string_view seal = payload.substr(payload.size() - kFrameSeal);
  payload.remove_suffix(kFrameSeal);
  Nonce sender{};
  std::copy_n(seal.begin(), kSealNonce, sender.begin());
  const std::string_view text = seal.substr(kSealNonce);
  const std::span signature(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  const std::string frame = std::string(header).append(payload);
  const auto fits = [&](const Nonce& receiver) {
    return keys_->Verify(SignedText(Other(role_), received_, receiver, sender, frame), signature);
  };
  const bool first = role_ == EndRole::kAnswering && received_ == 0;
  const bool known = received_ == 0 || sender == other_;
  const bool good = known && (first ? fits({}) : fits(own_) || (IsFailure(facts) && fits({})));
  if (!good) {
    return Fail(ErrorCode::kPermission,
                "what the other end of the test sent is not signed with a key that this one has", kKeyHint);
  }
  other_ = sender;
  ++received_;
  return std::string(payload);
}

}  // namespace railhead::rdma_test

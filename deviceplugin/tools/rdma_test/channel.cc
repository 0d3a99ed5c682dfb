#include "deviceplugin/tools/rdma_test/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <span>
#include <string_view>
#include <utility>

#include "netns/base/bytes.h"

namespace railhead::rdmatest {
namespace {

constexpr std::chrono::milliseconds kLongestPoll{60'000};
// For the rest of a message whose beginning has come.
constexpr std::chrono::seconds kTroubleLimit{1};

tl::unexpected<Error> Gone() {
  return Fail(ErrorCode::kIo, "the other end of the test has gone", "what railctl says there tells why");
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
                  "it may still wait for its device: what railctl says there tells why");
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
      return FailSys(errno, "telling the other end of the test");
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
      return FailSys(errno, "hearing the other end of the test");
  }
  return bytes;
}

Result<Message> Channel::Receive(TimePoint deadline) const {
  const std::string first = RH_TRY(ReceiveBytes(kFrameHeader, deadline));
  const FrameHeader header = RH_TRY(DecodeHeader(first));
  const std::string sealed = RH_TRY(ReceiveBytes(header.length, deadline));
  const std::string payload = RH_TRY(seal_->Open(first, sealed));
  Message message = RH_TRY(DecodePayload(header, payload));
  if (const Trouble* trouble = std::get_if<Trouble>(&message)) return Fail(ErrorOf(*trouble));
  return message;
}

Result<void> Channel::StillThere() const {
  std::string first(kFrameHeader, '\0');
  const ssize_t got = recv(fd_.get(), first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got < 0 && errno != ECONNRESET) return FailSys(errno, "looking for the other end of the test");
  if (got <= 0) return Gone();
  // Half a header: the rest is under way, or never comes, which the next look or the run's limit tells.
  if (static_cast<std::size_t>(got) < first.size()) return {};
  const FrameHeader header = RH_TRY(DecodeHeader(first));
  if (!IsTrouble(header)) return {};
  RH_TRY(Receive(std::chrono::steady_clock::now() + kTroubleLimit));
  return {};
}

tl::unexpected<Error> Channel::Unexpected(const Message& message) {
  return Fail(ErrorCode::kMalformed,
              "the other end of the test sent a frame of kind " + std::to_string(message.index() + 1) +
                  " out of turn",
              "is it railctl rdma-test of the same version?");
}

namespace {

constexpr const char* kKeyHint = "--key-file with the same keys on both nodes: docs/rdma-test.md";

EndRole Other(EndRole role) {
  return role == EndRole::kStarting ? EndRole::kAnswering : EndRole::kStarting;
}

}  // namespace

FrameSeal::FrameSeal(std::shared_ptr<const SharedKeys> keys, EndRole role)
    : keys_(std::move(keys)), role_(role) {
  std::random_device random;
  for (char& byte : own_) byte = static_cast<char>(random());
}

std::string FrameSeal::Signed(EndRole sender, std::uint64_t count, const Nonce& receiver,
                              const Nonce& sent_by, std::string_view frame) const {
  bytes::Writer text;
  text.Put(static_cast<std::uint8_t>(sender)).Put(count);
  text.PutRaw({receiver.data(), receiver.size()}).PutRaw({sent_by.data(), sent_by.size()}).PutRaw(frame);
  return text.bytes();
}

std::string FrameSeal::Seal(std::string frame) {
  if (!keys_) return frame;
  frame = AsSealedFrame(std::move(frame));
  const auto signature = keys_->Sign(Signed(role_, sent_++, other_, own_, frame));
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
    return keys_->Verify(Signed(Other(role_), received_, receiver, sender, frame), signature);
  };
  const bool first = role_ == EndRole::kAnswering && received_ == 0;
  const bool known = received_ == 0 || sender == other_;
  const bool good = known && (first ? fits({}) : fits(own_) || (IsTrouble(facts) && fits({})));
  if (!good) {
    return Fail(ErrorCode::kPermission,
                "what the other end of the test sent is not signed with a key that this one has", kKeyHint);
  }
  other_ = sender;
  ++received_;
  return std::string(payload);
}

}  // namespace railhead::rdmatest

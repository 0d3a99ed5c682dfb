#include "deviceplugin/tools/rdma_test/frame_seal.h"

#include <sys/socket.h>

#include <algorithm>
#include <random>
#include <span>
#include <utility>

#include "netns/base/bytes.h"

namespace railhead::rdma_test {
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

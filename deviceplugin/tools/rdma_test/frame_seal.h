// FrameSeal: signatures of one end's frames, and checks of the other end's, with keys that both share.
//
// A sealed frame has version 2. Its payload is followed by the sender's nonce (16 bytes) and a signature
// (32). The signature covers the sender's role, the number of its earlier frames, the receiver's nonce, the
// sender's nonce, and the frame. So no frame fits into another connection or another place. In its hello, the
// starting end does not know the other's nonce. Neither may an end that only reports a failure. Both sign
// these frames with zeros in its place. An attacker who replays a recorded hello gets its answer, but cannot
// go on. Nothing is encrypted.
// Ownership: shares the keys. Threads: one. Errors: kPermission: no or another key.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "deviceplugin/support/keys/shared_keys.h"
#include "deviceplugin/tools/rdma_test/wire_protocol.h"
#include "netns/base/result.h"

namespace railhead::rdma_test {

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

}  // namespace railhead::rdma_test

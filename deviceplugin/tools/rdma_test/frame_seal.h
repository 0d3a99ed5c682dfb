// FrameSeal: signatures of one end's frames, and checks of the other end's, with keys that both share.
//
// A sealed frame has version 2, and behind its payload the sender's nonce (16 bytes) and a signature (32) of:
// who sends it, how many frames he sent before, the receiver's nonce, the sender's nonce, the frame. So no
// frame fits into another connection or another place. The starting end does not know the other's nonce when
// it says hello, nor may an end that only tells of a trouble: these are signed with zeros in its place. Who
// recorded a hello can have it answered again, and gets no further. Nothing is encrypted. Ownership: shares
// the keys. Threads: one. Errors: kPermission: no or another key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "deviceplugin/support/keys/shared_keys.h"
#include "deviceplugin/tools/rdma_test/wire_protocol.h"

namespace railhead::rdmatest {

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
  [[nodiscard]] std::string Signed(EndRole sender, std::uint64_t count, const Nonce& receiver,
                                   const Nonce& sent_by, std::string_view frame) const;

  const std::shared_ptr<const SharedKeys> keys_;
  const EndRole role_;
  Nonce own_{};
  Nonce other_{};  // zeros: not known
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace railhead::rdmatest

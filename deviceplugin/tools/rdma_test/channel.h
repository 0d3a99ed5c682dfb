// Messages over a connected stream socket, to the other end of a test.
//
// Ownership: borrows nothing, keeps the descriptor. Threads: one.
// Errors: kTimeout at the deadline, kIo when the other end has gone, and those of exchange.h;
// a Trouble that comes is an error itself.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "deviceplugin/support/keys/shared_keys.h"
#include "deviceplugin/tools/rdma_test/wire_protocol.h"
#include "netns/base/unique_fd.h"

namespace railhead::rdmatest {

// FrameSeal: signatures of one end's frames, and checks of the other end's, with keys that both share.
//
// A sealed frame has version 2, and behind its payload the sender's nonce (16 bytes) and a signature (32) of:
// who sends it, how many frames he sent before, the receiver's nonce, the sender's nonce, the frame. So no
// frame fits into another connection or another place. The starting end does not know the other's nonce when
// it says hello, nor may an end that only tells of a trouble: these are signed with zeros in its place. Who
// recorded a hello can have it answered again, and gets no further. Nothing is encrypted. Ownership: shares
// the keys. Threads: one. Errors: kPermission: no or another key.

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

using TimePoint = std::chrono::steady_clock::time_point;

class Channel {
 public:
  explicit Channel(UniqueFd fd) : Channel(std::move(fd), nullptr, EndRole::kStarting) {}
  // Each frame is signed, and has to be, where there are `keys`.
  Channel(UniqueFd fd, std::shared_ptr<const SharedKeys> keys, EndRole role)
      : fd_(std::move(fd)), seal_(std::make_unique<FrameSeal>(std::move(keys), role)) {}

  [[nodiscard]] Result<void> Send(const Message& message, TimePoint deadline) const;
  [[nodiscard]] Result<Message> Receive(TimePoint deadline) const;

  // Whether the other end is still there and well, without waiting: an error once it has gone, or has
  // said what its trouble is. Any other message stays where it is.
  [[nodiscard]] Result<void> StillThere() const;

  // The next message, which has to be one of this kind.
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

}  // namespace railhead::rdmatest

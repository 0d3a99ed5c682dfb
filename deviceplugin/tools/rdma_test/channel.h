// Messages over a connected stream socket, to the other end of a test.
//
// Ownership: borrows nothing, keeps the descriptor. Threads: one.
// Errors: kTimeout at the deadline, kIo when the other end has gone, kMalformed;
// a received Failure is an error itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "deviceplugin/support/keys/shared_keys.h"
#include "deviceplugin/tools/rdma_test/frame_seal.h"
#include "deviceplugin/tools/rdma_test/wire_protocol.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead::rdma_test {

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

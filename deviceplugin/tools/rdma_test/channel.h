// Messages over a connected stream socket, to the other end of a test.
//
// Ownership: borrows nothing, keeps the descriptor. Threads: one.
// Errors: kTimeout at the deadline, kIo when the other end has gone, and those of exchange.h;
// a Trouble that comes is an error itself.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "deviceplugin/tools/rdma_test/frame_seal.h"
#include "deviceplugin/tools/rdma_test/wire_protocol.h"
#include "netns/base/unique_fd.h"

namespace railhead::rdmatest {

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

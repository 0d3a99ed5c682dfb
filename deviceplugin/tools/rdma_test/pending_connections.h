// PendingConnections: connections whose request is not complete, so that a silent one delays no other.
//
// A connection is ready when its first message is complete, or cannot become complete: the peer closed it or
// sent something else. The caller can then read its message, or the error, without waiting. At most kMost
// connections wait; beyond that the oldest one is closed. Ownership: owns the connections, TCP sockets.
// Threads: one. Errors: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "deviceplugin/tools/rdma_test/channel.h"
#include "netns/base/unique_fd.h"

namespace railhead::rdma_test {

class PendingConnections {
 public:
  static constexpr std::size_t kMost = 16;

  void Add(UniqueFd connection, TimePoint until);
  // The oldest connection that is ready.
  std::optional<UniqueFd> TakeReady();
  // Closes connections whose time is over, and those beyond kMost. Returns how many.
  std::size_t DropExpired(TimePoint now);

  // Readable when TakeReady() may have one.
  [[nodiscard]] std::vector<int> fds() const;
  // When DropExpired() will close the next one.
  [[nodiscard]] std::optional<TimePoint> NextDeadline() const;

 private:
  struct Entry {
    UniqueFd connection;
    TimePoint until;
  };
  std::deque<Entry> entries_;  // oldest first
};

}  // namespace railhead::rdma_test

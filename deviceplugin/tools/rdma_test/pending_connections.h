// Where connections wait until they have said which test they want, so that one that says nothing keeps
// nobody waiting.
//
// A connection is ready when its first message is there whole, or will never be: it has gone, or says
// something else. Who takes it reads that message, or finds out what is wrong, without waiting.
// At most kMost wait; then the one that has waited longest goes.
// Ownership: keeps the connections, TCP sockets. Threads: one. Errors: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "deviceplugin/tools/rdma_test/channel.h"
#include "netns/base/unique_fd.h"

namespace railhead::rdmatest {

class Lobby {
 public:
  static constexpr std::size_t kMost = 16;

  void Enter(UniqueFd connection, TimePoint until);
  // The one of those who are ready that has waited longest.
  std::optional<UniqueFd> TakeReady();
  // Closes those whose time is over, and those that there is no room for; how many.
  std::size_t Drop(TimePoint now);

  // Readable when it is worth asking TakeReady().
  [[nodiscard]] std::vector<int> fds() const;
  // When there will be something for Drop().
  [[nodiscard]] std::optional<TimePoint> FirstEnd() const;

 private:
  struct Guest {
    UniqueFd connection;
    TimePoint until;
  };
  std::deque<Guest> guests_;  // in the order in which they came
};

}  // namespace railhead::rdmatest

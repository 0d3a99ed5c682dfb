// The two ends of one test, each in its own process and network namespace, over a channel.
//
// An end that fails tells the other one why, so that the starting end knows it all.
// Threads: one each. Errors: those of device, queue pair, channel and runs; every wait is bounded.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/tools/rdma_test/channel.h"
#include "deviceplugin/tools/rdma_test/outcome.h"
#include "deviceplugin/tools/rdma_test/plan.h"
#include "deviceplugin/tools/rdma_test/wire_protocol.h"
#include "netns/base/unique_fd.h"

namespace railhead::rdmatest {

struct TestParameters {
  std::uint32_t size = 65536;
  int depth = 64;
  int seconds = 2;                                   // of each run
  int timeout = 18;                                  // of the queue pairs, see QueuePairSettings
  std::shared_ptr<const SharedKeys> keys = nullptr;  // for tests with another node; nullptr: none
};

// Of a key file (shared_keys.h), which has to be there; nullptr for "".
Result<std::shared_ptr<const SharedKeys>> ReadKeys(const std::string& path);

// For each step before the runs: opening devices, and the kernel's second for a neighbour.
inline constexpr std::chrono::seconds kHandshake{30};

// How long a whole test can take at most.
std::chrono::seconds LongestTest(const TestParameters& parameters);

Result<Outcome> RunStartingEnd(const Channel& channel, const TestParameters& parameters, const RailEnd& end,
                               const std::optional<IpAddress>& towards);

// `choose` says what to use on the rail that the other end names.
using ChooseRail = std::function<Result<RailEnd>(const std::string& rail)>;
Result<void> RunAnsweringEnd(const Channel& channel, const ChooseRail& choose);

// Where connections wait until they have said which test they want, so that one that says nothing keeps
// nobody waiting.
//
// A connection is ready when its first message is there whole, or will never be: it has gone, or says
// something else. Who takes it reads that message, or finds out what is wrong, without waiting.
// At most kMost wait; then the one that has waited longest goes.
// Ownership: keeps the connections, TCP sockets. Threads: one. Errors: none.

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

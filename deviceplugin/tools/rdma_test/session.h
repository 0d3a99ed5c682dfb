// The two ends of one test, each in its own process and network namespace, over a channel.
//
// An end that fails sends its error to the other one, so that the starting end has all errors.
// Threads: one each. Errors: those of device, queue pair, channel and runs; every wait is bounded.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "deviceplugin/tools/rdma_test/channel.h"
#include "deviceplugin/tools/rdma_test/outcome.h"
#include "deviceplugin/tools/rdma_test/plan.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::rdma_test {

struct TestParameters {
  std::uint32_t size = 65536;
  int depth = 64;
  int seconds = 2;                                   // of each run
  int timeout = 18;                                  // of the queue pairs, see QueuePairSettings
  std::shared_ptr<const SharedKeys> keys = nullptr;  // for tests with another node; nullptr: none
};

// Reads a key file (shared_keys.h), which must exist; nullptr for "".
Result<std::shared_ptr<const SharedKeys>> ReadKeys(const std::string& path);

// The limit of each step before the runs: opening devices, and the kernel's second for a neighbour.
inline constexpr std::chrono::seconds kHandshake{30};

// The longest possible duration of a whole test.
std::chrono::seconds LongestTest(const TestParameters& parameters);

Result<Outcome> RunStartingEnd(const Channel& channel, const TestParameters& parameters, const RailEnd& end,
                               const std::optional<IpAddress>& towards);

// `choose` returns the device for the rail that the other end names.
using ChooseRail = std::function<Result<RailEnd>(const std::string& rail)>;
Result<void> RunAnsweringEnd(const Channel& channel, const ChooseRail& choose);

}  // namespace railhead::rdma_test

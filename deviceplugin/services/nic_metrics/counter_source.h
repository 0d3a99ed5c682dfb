// Where a NIC's counters come from: one network namespace, as the kernel has it.
//
// Ownership: owns its sockets, which hold the namespace; keep that of a pod for one collection only, or its
// NICs do not come home when it ends. Threads: one at a time. Errors: what is not there is nullopt or empty.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/nl/counters.h"
#include "netns/ns/netns.h"

namespace railhead {

class CounterSource {
 public:
  CounterSource() = default;
  CounterSource(const CounterSource&) = delete;
  CounterSource& operator=(const CounterSource&) = delete;
  virtual ~CounterSource() = default;

  virtual Result<std::optional<PfTraffic>> Link(const std::string& netdev) = 0;
  virtual Result<std::optional<NamedCounters>> Rdma(std::uint32_t device_index) = 0;
  // As `ethtool -S` shows them; those of `names` that there are.
  virtual Result<std::map<std::string, std::uint64_t>> Driver(const std::string& netdev,
                                                              const std::vector<std::string>& names) = 0;
};

using OpenCounterSource = std::function<Result<std::unique_ptr<CounterSource>>(const NetNs&)>;

// The running kernel's. Sockets are opened when they are needed.
Result<std::unique_ptr<CounterSource>> OpenKernelCounters(const NetNs& ns);

// Pause frames and per-priority counters of a port, out of what drivers call them.
//
// There is no name that all drivers use (ethtool's standard groups have pause frames, not by
// priority, and hardly any driver of RoCE NICs has more). What is known: mlx5_core, bnxt_en, ice, i40e,
// ixgbe, igb. Of another driver nothing is told.
// Source: drivers/net/ethernet/{mellanox/mlx5/core/en_stats.c, broadcom/bnxt/bnxt_ethtool.c,
// intel/ice/ice_ethtool.c, intel/i40e/i40e_ethtool.c, intel/ixgbe/ixgbe_ethtool.c, intel/igb/igb_ethtool.c}.
// Threads: pure functions.

enum class PriorityCounter : std::uint8_t {
  kPauseFrames,        // XOFF
  kPauseMicroseconds,  // for how long the sender of the direction was stopped
  kBytes,
  kDiscards,
};

struct PriorityCount {
  PriorityCounter counter = PriorityCounter::kPauseFrames;
  bool transmit = false;
  std::optional<int> priority;  // nullopt: of the port as a whole
  std::uint64_t value = 0;

  bool operator==(const PriorityCount&) const = default;
};

// What to ask a driver for; empty: it is not known.
const std::vector<std::string>& PriorityCounterNames(const std::string& driver);
// Of what it answered; what it does not have is left out.
std::vector<PriorityCount> PriorityCountsOf(const std::string& driver,
                                            const std::map<std::string, std::uint64_t>& statistics);

}  // namespace railhead

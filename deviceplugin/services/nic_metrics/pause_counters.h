// Pause frames and per-priority counters of a port, out of what drivers call them.
//
// There is no name that all drivers use (ethtool's standard groups have pause frames, not by
// priority, and hardly any driver of RoCE NICs has more). What is known: mlx5_core, bnxt_en, ice, i40e,
// ixgbe, igb. Of another driver nothing is told.
// Source: drivers/net/ethernet/{mellanox/mlx5/core/en_stats.c, broadcom/bnxt/bnxt_ethtool.c,
// intel/ice/ice_ethtool.c, intel/i40e/i40e_ethtool.c, intel/ixgbe/ixgbe_ethtool.c, intel/igb/igb_ethtool.c}.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace railhead {

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

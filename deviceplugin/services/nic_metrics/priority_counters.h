// Pause frames and per-priority counters of a port, from the drivers' own names.
//
// Drivers have no common names: ethtool's standard groups have pause frames, but not by priority. Hardly any
// driver of RoCE NICs has more. The known drivers are mlx5_core, bnxt_en, ice, i40e, ixgbe and igb. Other
// drivers get no such counters.
// Source: drivers/net/ethernet/{mellanox/mlx5/core/en_stats.c, broadcom/bnxt/bnxt_ethtool.c,
// intel/ice/ice_ethtool.c, intel/i40e/i40e_ethtool.c, intel/ixgbe/ixgbe_ethtool.c, intel/igb/igb_ethtool.c}.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace railhead::nic_metrics {

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

// The counters to ask a driver for. Empty: the driver is unknown.
const std::vector<std::string>& PriorityCounterNames(const std::string& driver);
// Takes the counters that the driver returned. It omits those that the driver lacks.
std::vector<PriorityCount> PriorityCountsOf(const std::string& driver,
                                            const std::map<std::string, std::uint64_t>& statistics);

}  // namespace railhead::nic_metrics

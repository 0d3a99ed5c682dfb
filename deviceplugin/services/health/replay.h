// What rules of health make of a recording: the monitor itself, driven by the recorded clock.
//
// In every round the PFs are told to the monitor as they were seen last, and so are VFs that have a line or
// that a rule is about to take hold of or let go; to all others a round says nothing new. With the recorded
// rules the changes are those that the recorded process found. Under other rules nothing can be known that
// was not observed: Missing() tells what these rules ask for and the recording does not hold. Threads: pure
// functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/health/recording.h"
#include "deviceplugin/services/health/rules.h"

namespace railhead::health {

struct ReplayedRound {
  std::chrono::milliseconds at{0};  // since the recording began
  std::vector<HealthChange> changes;
};

struct Replayed {
  std::vector<ReplayedRound> rounds;  // those with changes
  std::vector<DeviceHealth> begin;    // as the first header has them
  std::vector<DeviceHealth> end;
  std::size_t looks = 0;  // rounds, with changes or without
  std::chrono::milliseconds lasted{0};
};

// Under `rules`; nullopt: those that are recorded.
Replayed Replay(const Recording& recording, const std::optional<HealthRules>& rules);

// What `rules` would have asked for and nobody did, one sentence each.
std::vector<std::string> Missing(const Recording& recording, const HealthRules& rules);

}  // namespace railhead::health

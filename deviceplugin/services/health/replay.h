// Applies health rules to a recording: the monitor itself, driven by the recorded clock.
//
// In every round the monitor gets the last observation of all PFs, and of VFs that have a line. It also gets
// those of VFs for which a rule is about to fire or clear. A round changes nothing for the other VFs. With
// the recorded rules the changes are those that the recorded process found. Other rules may need observations
// that the recording does not have: Missing() lists them. Threads: pure functions.
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

struct ReplayRound {
  std::chrono::milliseconds at{0};  // since the recording began
  std::vector<HealthChange> changes;
};

struct ReplayResult {
  std::vector<ReplayRound> rounds;  // those with changes
  std::vector<DeviceHealth> begin;  // as the first header has them
  std::vector<DeviceHealth> end;
  std::size_t round_count = 0;  // with changes or without
  std::chrono::milliseconds lasted{0};
};

// Under `rules`; nullopt: under the recorded ones.
ReplayResult Replay(const Recording& recording, const std::optional<HealthRules>& rules);

// The observations that `rules` need and the recording does not have, one sentence each.
std::vector<std::string> Missing(const Recording& recording, const HealthRules& rules);

}  // namespace railhead::health

// What many peers have in common, as metrics and railctl show it.
// Threads: pure functions.
#pragma once

#include <chrono>
#include <optional>

#include "deviceplugin/services/reachability/reach_report.h"

namespace railhead {

struct RttSpread {
  std::chrono::microseconds median{};
  std::chrono::microseconds largest{};
};

// Over the peers that are reachable and have one; nullopt: there is none.
std::optional<RttSpread> SpreadOfRtt(const RailReach& rail);

}  // namespace railhead

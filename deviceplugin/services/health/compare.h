// Two timelines of one recording side by side: who was Unhealthy in the one and not in the other, or at
// other times.
// Threads: pure functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/health/replay.h"

namespace railhead {

struct UnhealthySpan {
  std::chrono::milliseconds from{0};
  std::optional<std::chrono::milliseconds> to;  // nullopt: it was so at the end
  std::vector<HealthReason> reasons;            // with which it began

  // When it was; why is another matter.
  [[nodiscard]] bool SameTimes(const UnhealthySpan& other) const {
    return from == other.from && to == other.to;
  }
};

// A device, or a PF and those of its VFs that its trouble reaches alike.
struct SpanDifference {
  std::string device;
  bool itself = true;  // false: only VFs of `device`
  std::size_t vfs = 0;
  std::optional<UnhealthySpan> before;  // in the first timeline; nullopt: not Unhealthy then
  std::optional<UnhealthySpan> after;   // in the second
};

// In the order of time. Empty: both say the same of every device at every time.
std::vector<SpanDifference> Compare(const Replayed& first, const Replayed& second);

}  // namespace railhead

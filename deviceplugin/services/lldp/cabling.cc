#include "deviceplugin/services/lldp/cabling.h"

#include <fnmatch.h>

#include <algorithm>

#include "netns/base/text.h"

namespace railhead::lldp {

namespace {

bool IsOnExpectedSwitch(const RailNeighbor& rail) {
  return MatchesSwitch(rail.expected, rail.neighbor->neighbor.SwitchName());
}

bool CouldBeOf(const RailNeighbor& rail, const RailNeighbor& other) {
  return &rail != &other && !other.expected.empty() &&
         MatchesSwitch(other.expected, rail.neighbor->neighbor.SwitchName());
}

// In the order of likelihood: two cables are swapped, or one cable is in another one's place.
std::string DescribeMiscabling(const RailNeighbor& rail, const std::vector<RailNeighbor>& rails) {
  const RailNeighbor* owner = nullptr;
  for (const RailNeighbor& other : rails) {
    if (!CouldBeOf(rail, other)) continue;
    if (other.neighbor && !IsOnExpectedSwitch(other) && CouldBeOf(other, rail))
      return "swapped with " + other.rail;
    if (owner == nullptr) owner = &other;
  }
  if (owner != nullptr) return "this is the switch of " + owner->rail;
  return "expected: " + Join(rail.expected, ", ");
}

}  // namespace

bool MatchesSwitch(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

void JudgeCabling(std::vector<RailNeighbor>& rails) {
  for (RailNeighbor& rail : rails) {
    if (!rail.neighbor) {
      rail.cabling = Cabling::kUnknown;
      continue;
    }
    rail.because.clear();
    if (rail.expected.empty()) {
      rail.cabling = Cabling::kUnchecked;
    } else if (IsOnExpectedSwitch(rail)) {
      rail.cabling = Cabling::kRight;
    } else {
      rail.cabling = Cabling::kWrong;
      rail.because = DescribeMiscabling(rail, rails);
    }
  }
}

}  // namespace railhead::lldp

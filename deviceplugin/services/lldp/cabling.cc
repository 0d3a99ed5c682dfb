#include "deviceplugin/services/lldp/cabling.h"

#include <fnmatch.h>

#include <algorithm>

#include "netns/base/text.h"

namespace railhead {
namespace {

bool HangsRight(const RailLeaf& rail) {
  return MatchesLeaf(rail.expected, rail.neighbour->neighbour.Leaf());
}

bool CouldBeOf(const RailLeaf& rail, const RailLeaf& other) {
  return &rail != &other && !other.expected.empty() &&
         MatchesLeaf(other.expected, rail.neighbour->neighbour.Leaf());
}

// In the order of likelihood: two cables changed places; one is in the place of another.
std::string WhatIsWrong(const RailLeaf& rail, const std::vector<RailLeaf>& rails) {
  const RailLeaf* owner = nullptr;
  for (const RailLeaf& other : rails) {
    if (!CouldBeOf(rail, other)) continue;
    if (other.neighbour && !HangsRight(other) && CouldBeOf(other, rail)) return "swapped with " + other.rail;
    if (owner == nullptr) owner = &other;
  }
  if (owner != nullptr) return "this is where " + owner->rail + " belongs";
  return "expected: " + Join(rail.expected, ", ");
}

}  // namespace

bool MatchesLeaf(const std::vector<std::string>& patterns, const std::string& leaf) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), leaf.c_str(), 0) == 0;
  });
}

void JudgeCabling(std::vector<RailLeaf>& rails) {
  for (RailLeaf& rail : rails) {
    if (!rail.neighbour) {
      rail.cabling = Cabling::kUnknown;
      continue;
    }
    rail.because.clear();
    if (rail.expected.empty()) {
      rail.cabling = Cabling::kUnchecked;
    } else if (HangsRight(rail)) {
      rail.cabling = Cabling::kRight;
    } else {
      rail.cabling = Cabling::kWrong;
      rail.because = WhatIsWrong(rail, rails);
    }
  }
}

}  // namespace railhead

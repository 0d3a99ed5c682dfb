// Versions as "MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]", and what a program says its version is.
//
// Order: https://semver.org, version 2.0.0, section 11; what is behind '+' does not count.
// Threads: ParseVersion and the order are pure; AskVersion waits for a child.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railhead {

struct Version {
  std::array<std::int64_t, 3> numbers{};
  std::vector<std::string> prerelease;

  std::weak_ordering operator<=>(const Version& other) const;
  bool operator==(const Version& other) const = default;
};

std::optional<Version> ParseVersion(std::string_view text);

// The second word that `PATH --version` prints, when the first one is `name` and it is a version:
// of the programs of Railhead. nullopt for everything else: no program at all, one cut short, one
// of another name, one that does not end within `limit` (it is killed then).
std::optional<std::string> AskVersion(const std::string& path, std::string_view name,
                                      std::chrono::milliseconds limit);

}  // namespace railhead

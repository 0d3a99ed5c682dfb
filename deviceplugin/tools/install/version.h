// Versions as "MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]", and the version that a program prints.
//
// Order: https://semver.org, version 2.0.0, section 11. The part behind '+' does not count.
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

namespace railhead::install {

struct Version {
  std::array<std::int64_t, 3> numbers{};
  std::vector<std::string> prerelease;

  std::weak_ordering operator<=>(const Version& other) const;
  bool operator==(const Version& other) const = default;
};

std::optional<Version> ParseVersion(std::string_view text);

// The version in the output of `PATH --version`, as Railhead's programs print it. The first word must be
// `name`, the second one a version. Otherwise nullopt: for a missing, truncated or differently named program.
// So, too, for one that does not end within `limit`, which is then killed.
std::optional<std::string> AskVersion(const std::string& path, std::string_view name,
                                      std::chrono::milliseconds limit);

}  // namespace railhead::install

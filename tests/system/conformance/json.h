// JSON from an unknown program. It may have any form, so every access returns an empty value instead of
// failing.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace railhead::conformance {

using Json = nlohmann::json;

// nullopt unless the whole text is one JSON value.
std::optional<Json> ParseJson(const std::string& text);

// "" when it is absent or not a string.
std::string Text(const Json& object, const std::string& key);
// nullopt when it is absent or not an integer.
std::optional<std::int64_t> Number(const Json& object, const std::string& key);
// Empty when it is absent or not a list. Skips entries that are not objects.
std::vector<Json> Objects(const Json& object, const std::string& key);

// "1.0.0" -> {1, 0, 0}; nullopt when it is not three numbers.
std::optional<std::vector<std::int64_t>> VersionNumbers(const std::string& version);
// Both are versions and `version` is at least `least`.
bool AtLeast(const std::string& version, const std::string& least);

}  // namespace railhead::conformance

// Numbers and words out of strings, strictly: the whole string or nothing.
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railhead {

// Decimal, no sign but '-', no blanks; nullopt if malformed or out of range.
std::optional<std::int64_t> ParseInt(std::string_view text);
// Hexadecimal without prefix.
std::optional<std::uint64_t> ParseHex(std::string_view text);

std::vector<std::string> Split(std::string_view text, char separator);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
std::string ToLower(std::string_view text);

// Whether `value` is an element of `range`, or the result of `projection` for one (&Rail::name).
template <typename Range, typename Value, typename Projection = std::identity>
bool Contains(const Range& range, const Value& value, Projection projection = {}) {
  return std::ranges::find(range, value, projection) != std::ranges::end(range);
}

// The candidate nearest to a misspelt `word` (edit distance at most a third of
// its length, at least 1); nullopt when none is near.
std::optional<std::string> Nearest(std::string_view word, const std::vector<std::string>& candidates);

// "2026-03-01T12:00:00Z": RFC 3339 in UTC, to the second.
std::string FormatTime(std::chrono::system_clock::time_point time);
std::optional<std::chrono::system_clock::time_point> ParseTime(std::string_view text);

}  // namespace railhead

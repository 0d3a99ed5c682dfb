// Numbers and words out of strings, strictly: the whole string or nothing.
// Threads: pure functions.
#pragma once

#include <cstdint>
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
bool Contains(const std::vector<std::string>& words, std::string_view word);

// The candidate nearest to a misspelt `word` (edit distance at most a third of
// its length, at least 1); nullopt when none is near.
std::optional<std::string> Nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace railhead

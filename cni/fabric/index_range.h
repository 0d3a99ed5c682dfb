// IndexRange: indices of nodes, from `first` to `last`, both included. In JSON "32-63", or "32" for one.
// Threads: a value.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "netns/json/record.h"

namespace railhead {

struct IndexRange {
  int first = 0;
  int last = 0;

  // nullopt: not two numbers from 0 on, or the second one is lower.
  static std::optional<IndexRange> Parse(std::string_view text);
  [[nodiscard]] std::string ToString() const {
    return first == last ? std::to_string(first) : std::to_string(first) + "-" + std::to_string(last);
  }

  [[nodiscard]] bool Contains(int index) const { return first <= index && index <= last; }
  [[nodiscard]] bool Overlaps(const IndexRange& other) const {
    return first <= other.last && other.first <= last;
  }
  bool operator==(const IndexRange&) const = default;
};

template <>
struct TextForm<IndexRange> : ParsedText<IndexRange> {
  static constexpr const char* kWrong = "is not a range of indices";
};

inline std::optional<IndexRange> IndexRange::Parse(std::string_view text) {
  const auto number = [](std::string_view digits) -> std::optional<int> {
    int value = 0;
    const char* end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, value);
    if (error != std::errc{} || at != end || value < 0) return std::nullopt;
    return value;
  };
  const auto dash = text.find('-');
  const auto first = number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return IndexRange{*first, *last};
}

}  // namespace railhead

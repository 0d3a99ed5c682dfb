#include "cni/fabric/node_pattern.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>

namespace railhead {
namespace {

// A name of Kubernetes has at most 253 characters, so a number of it fits.
constexpr std::size_t kMostDigits = 18;
constexpr std::size_t kMostPattern = 1024;

bool IsOfDigits(std::string_view text) {
  return !text.empty() && text.size() <= kMostDigits &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

struct NumberRange {
  std::string_view first;
  std::string_view last;
  std::size_t length = 0;  // in the pattern, with its brackets
};

// At a '['. nullopt: it is none.
std::optional<NumberRange> RangeAt(std::string_view pattern) {
  const auto end = pattern.find(']');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view inside = pattern.substr(1, end - 1);
  const auto dash = inside.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const NumberRange range{inside.substr(0, dash), inside.substr(dash + 1), end + 1};
  const bool is_range = IsOfDigits(range.first) && IsOfDigits(range.last) &&
                        range.first.size() == range.last.size() && range.first <= range.last;
  return is_range ? std::optional(range) : std::nullopt;
}

// How much of the name the pattern's first element takes; nullopt: it does not match. Not for '*'.
struct Step {
  std::size_t of_pattern;
  std::size_t of_name;
};
std::optional<Step> StepOver(std::string_view pattern, std::string_view name) {
  if (pattern.front() == '[') {
    const auto range = RangeAt(pattern);
    if (!range) return std::nullopt;
    const std::string_view number = name.substr(0, range->first.size());
    // Numbers of one width compare as texts do.
    if (number.size() != range->first.size() || !IsOfDigits(number) || number < range->first ||
        range->last < number)
      return std::nullopt;
    return Step{range->length, number.size()};
  }
  if (name.empty() || (pattern.front() != '?' && pattern.front() != name.front())) return std::nullopt;
  return Step{1, 1};
}

}  // namespace

std::string FaultOfNodePattern(std::string_view pattern) {
  if (pattern.empty()) return "is empty";
  if (pattern.size() > kMostPattern) return "is longer than 1024 characters";
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] == ']') return "has a ']' without a '['";
    if (pattern[at] != '[') {
      ++at;
      continue;
    }
    const auto range = RangeAt(pattern.substr(at));
    if (!range) return "has no range of two numbers of one width, the lower one first, after '['";
    at += range->length;
  }
  return {};
}

bool MatchesNodePattern(std::string_view pattern, std::string_view name) {
  // Each '*' takes as little as it can. If the rest does not match, the last '*' takes one character more.
  std::string_view after_star;
  std::string_view retry;
  bool has_star = false;
  while (!pattern.empty() || !name.empty()) {
    if (!pattern.empty() && pattern.front() == '*') {
      pattern.remove_prefix(1);
      after_star = pattern;
      retry = name;
      has_star = true;
      continue;
    }
    if (!pattern.empty()) {
      if (const auto step = StepOver(pattern, name)) {
        pattern.remove_prefix(step->of_pattern);
        name.remove_prefix(step->of_name);
        continue;
      }
    }
    if (!has_star || retry.empty()) return false;
    retry.remove_prefix(1);
    name = retry;
    pattern = after_star;
  }
  return true;
}

}  // namespace railhead

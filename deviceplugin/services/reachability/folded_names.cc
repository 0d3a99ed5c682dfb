#include "deviceplugin/services/reachability/folded_names.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "netns/base/text.h"

namespace railhead::reachability {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::size_t kMostDigits = 18;  // that fit an integer

std::string_view WithoutZeros(std::string_view number) {
  const std::size_t first = number.find_first_not_of('0');
  return first == std::string_view::npos ? std::string_view() : number.substr(first);
}

// The leading part of `text`: either digits or other characters.
std::string_view Piece(std::string_view text, bool digits) {
  const std::size_t end = digits ? text.find_first_not_of(kDigits) : text.find_first_of(kDigits);
  return text.substr(0, end);
}

// The text before the number, its width, and the text behind it.
using NameShape = std::tuple<std::string, std::size_t, std::string>;

struct NumberedName {
  NameShape shape;
  std::int64_t number = 0;
};

NumberedName TakeApart(const std::string& name) {
  const std::string label = name.substr(0, name.find('.'));
  const std::size_t last = label.find_last_of(kDigits);
  if (last == std::string::npos) return {{name, 0, ""}, 0};
  const std::size_t before = label.find_last_not_of(kDigits, last);
  const std::size_t first = before == std::string::npos ? 0 : before + 1;
  const std::size_t width = last + 1 - first;
  if (width > kMostDigits) return {{name, 0, ""}, 0};
  const std::int64_t number = ParseInt(name.substr(first, width)).value_or(0);
  // gpu-9 and gpu-10 form one row; gpu-09 and gpu-9 do not.
  const bool padded = name[first] == '0';
  return {{name.substr(0, first), padded ? width : std::to_string(number).size(), name.substr(last + 1)},
          number};
}

std::string Padded(std::int64_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  return std::string(width > digits.size() ? width - digits.size() : 0, '0') + digits;
}

std::string Folded(const NameShape& shape, std::vector<std::int64_t> numbers) {
  const auto& [prefix, width, suffix] = shape;
  if (width == 0) return prefix;
  std::ranges::sort(numbers);
  if (numbers.size() == 1) return prefix + Padded(numbers[0], width) + suffix;
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    std::string range = Padded(numbers[i], width);
    if (end - i > 1) range += (end - i > 2 ? "-" : ",") + Padded(numbers[end - 1], width);
    ranges.push_back(std::move(range));
    i = end;
  }
  return prefix + "[" + Join(ranges, ",") + "]" + suffix;
}

}  // namespace

bool NaturallyLess(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  for (bool digits = false; !a.empty() && !b.empty(); digits = !digits) {
    const std::string_view of_a = Piece(a, digits);
    const std::string_view of_b = Piece(b, digits);
    a.remove_prefix(of_a.size());
    b.remove_prefix(of_b.size());
    const std::string_view key_a = digits ? WithoutZeros(of_a) : of_a;
    const std::string_view key_b = digits ? WithoutZeros(of_b) : of_b;
    if (digits && key_a.size() != key_b.size()) return key_a.size() < key_b.size();
    if (key_a != key_b) return key_a < key_b;
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;
}

std::string FoldedNames(const std::vector<std::string>& names) {
  std::map<NameShape, std::vector<std::int64_t>> shapes;
  for (const std::string& name : names) {
    const NumberedName apart = TakeApart(name);
    shapes[apart.shape].push_back(apart.number);
  }
  // Ordered by the first name of each: a name with a bracket has no place in the order.
  std::vector<std::pair<std::string, std::string>> folded;
  for (auto& [shape, numbers] : shapes) {
    const std::int64_t first = *std::ranges::min_element(numbers);
    folded.emplace_back(Folded(shape, {first}), Folded(shape, numbers));
  }
  std::ranges::sort(folded,
                    [](const auto& one, const auto& other) { return NaturallyLess(one.first, other.first); });
  std::vector<std::string> parts;
  parts.reserve(folded.size());
  for (auto& [first, text] : folded) parts.push_back(std::move(text));
  return Join(parts, ",");
}

}  // namespace railhead::reachability

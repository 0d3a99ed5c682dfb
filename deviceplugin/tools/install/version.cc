#include "deviceplugin/tools/install/version.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "deviceplugin/support/program/program.h"
#include "netns/base/text.h"

namespace railhead::install {
namespace {

bool IsIdentifier(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  });
}

// Numbers come before words. Numbers compare by value, words by their bytes.
std::weak_ordering CompareIdentifiers(const std::string& a, const std::string& b) {
  const auto number_a = ParseInt(a);
  const auto number_b = ParseInt(b);
  if (number_a && number_b) return *number_a <=> *number_b;
  if (number_a.has_value() != number_b.has_value()) {
    return number_a ? std::weak_ordering::less : std::weak_ordering::greater;
  }
  return a <=> b;
}

}  // namespace

std::weak_ordering Version::operator<=>(const Version& other) const {
  if (const auto order = numbers <=> other.numbers; order != 0) return order;
  // A prerelease comes before its release.
  if (prerelease.empty() != other.prerelease.empty()) {
    return prerelease.empty() ? std::weak_ordering::greater : std::weak_ordering::less;
  }
  return std::lexicographical_compare_three_way(prerelease.begin(), prerelease.end(),
                                                other.prerelease.begin(), other.prerelease.end(),
                                                CompareIdentifiers);
}

std::optional<Version> ParseVersion(std::string_view text) {
  text = text.substr(0, text.find('+'));
  Version version;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    version.prerelease = Split(text.substr(dash + 1), '.');
    if (!std::ranges::all_of(version.prerelease, IsIdentifier)) return std::nullopt;
    text = text.substr(0, dash);
  }
  const auto parts = Split(text, '.');
  if (parts.size() != version.numbers.size()) return std::nullopt;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto number = ParseInt(parts[i]);
    if (!number || *number < 0) return std::nullopt;
    version.numbers.at(i) = *number;
  }
  return version;
}

std::optional<std::string> AskVersion(const std::string& path, std::string_view name,
                                      std::chrono::milliseconds limit) {
  const auto answer = AskProgram({path, {"--version"}, {}, limit});
  if (!answer) return std::nullopt;
  const auto words = Split(answer->substr(0, answer->find('\n')), ' ');
  if (words.size() != 2 || words[0] != name || !ParseVersion(words[1])) return std::nullopt;
  return words[1];
}

}  // namespace railhead::install

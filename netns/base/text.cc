#include "netns/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

namespace railhead {
namespace {

template <typename T>
std::optional<T> Parse(std::string_view text, int base) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Insertions, deletions, substitutions and swaps of neighbours (optimal string
// alignment): a swap is the commonest slip of a hand.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

constexpr const char* kTimeFormat = "%Y-%m-%dT%H:%M:%SZ";

}  // namespace

std::optional<std::int64_t> ParseInt(std::string_view text) {
  return Parse<std::int64_t>(text, 10);
}

std::optional<std::uint64_t> ParseHex(std::string_view text) {
  return Parse<std::uint64_t>(text, 16);
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string joined;
  for (const auto& part : parts) {
    if (&part != &parts.front()) joined.append(separator);
    joined.append(part);
  }
  return joined;
}

std::string ToLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::optional<std::string> Nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string lower = ToLower(word);
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::optional<std::string> nearest;
  for (const auto& candidate : candidates) {
    const std::size_t distance = EditDistance(lower, ToLower(candidate));
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string FormatTime(std::chrono::system_clock::time_point time) {
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time));
  std::tm utc{};
  if (::gmtime_r(&seconds, &utc) == nullptr) return "0000-00-00T00:00:00Z";
  std::array<char, 40> buffer{};
  return {buffer.data(), std::strftime(buffer.data(), buffer.size(), kTimeFormat, &utc)};
}

std::optional<std::chrono::system_clock::time_point> ParseTime(std::string_view text) {
  using std::chrono::system_clock;
  std::tm utc{};
  const std::string copy(text);
  const char* end = ::strptime(copy.c_str(), kTimeFormat, &utc);
  if (end == nullptr || *end != '\0') return std::nullopt;
  const std::chrono::seconds since_epoch(::timegm(&utc));
  // The clock counts nanoseconds, which end in the year 2262.
  if (std::chrono::abs(since_epoch) > std::chrono::floor<std::chrono::seconds>(system_clock::duration::max()))
    return std::nullopt;
  return system_clock::time_point(since_epoch);
}

}  // namespace railhead

#include "netns/json/record_table.h"

#include <algorithm>
#include <cstddef>

namespace railhead {

std::string AgeOf(std::chrono::system_clock::time_point time) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  if (time == std::chrono::system_clock::time_point()) return record::CellOf(nullptr);
  const auto seconds = std::max<std::int64_t>(
      0, std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now() - time).count());
  if (seconds < 2 * kMinute) return std::to_string(seconds) + "s";
  if (seconds < 2 * kHour) return std::to_string(seconds / kMinute) + "m";
  if (seconds < 2 * kDay) return std::to_string(seconds / kHour) + "h";
  return std::to_string(seconds / kDay) + "d";
}

std::string Aligned(const std::vector<Row>& rows, const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

namespace record {

std::string CellOf(const Json& value) {
  std::string text;
  if (value.is_string()) {
    text = value.get<std::string>();
  } else if (value.is_boolean()) {
    text = value.get<bool>() ? "yes" : "no";
  } else if (value.is_array()) {
    for (const Json& one : value) text += (text.empty() ? "" : ",") + CellOf(one);
  } else if (!value.is_null()) {
    text = Dump(value);
  }
  return text.empty() ? "-" : text;
}

}  // namespace record
}  // namespace railhead

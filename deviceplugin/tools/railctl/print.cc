#include "deviceplugin/tools/railctl/print.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "deviceplugin/tools/railctl/printable.h"

namespace railhead::railctl {

// A newline of a pod's must not begin a row.
void PrintTable(const std::vector<Row>& texts) {
  std::vector<Row> rows = texts;
  for (Row& row : rows) std::transform(row.begin(), row.end(), row.begin(), OneLine);
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    line.resize(line.find_last_not_of(' ') + 1);
    (void)std::printf("%s\n", line.c_str());
  }
}

void PrintJson(const nlohmann::json& json) {
  (void)std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

std::string AgeOf(std::chrono::system_clock::time_point time) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  const auto seconds = std::max<std::int64_t>(
      0, std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now() - time).count());
  if (seconds < 2 * kMinute) return std::to_string(seconds) + "s";
  if (seconds < 2 * kHour) return std::to_string(seconds / kMinute) + "m";
  if (seconds < 2 * kDay) return std::to_string(seconds / kHour) + "h";
  return std::to_string(seconds / kDay) + "d";
}

}  // namespace railhead::railctl

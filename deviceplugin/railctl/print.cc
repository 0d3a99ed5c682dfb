#include "deviceplugin/railctl/print.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace railhead::railctl {

void PrintTable(const std::vector<Row>& rows) {
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

}  // namespace railhead::railctl

#include "deviceplugin/tools/railctl/output.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "deviceplugin/support/kubernetes/kube_api.h"
#include "deviceplugin/tools/railctl/print.h"

namespace railhead::railctl {

CLI::Option* Output::AddTo(CLI::App* command) {
  command->add_flag("--no-headers", no_headers_, "tables without their headings");
  return command->add_option("-o,--output", format_, "how to print it: table, wide, json or yaml")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml"}))
      ->capture_default_str();
}

void Output::PrintText(const std::string& text) {
  (void)std::fputs(text.c_str(), stdout);
}

void Output::PrintData(const nlohmann::ordered_json& json, bool one_line) const {
  PrintText(format_ == "yaml" ? JsonToYaml(json) : record::Dump(json, one_line ? -1 : 2) + "\n");
}

void Output::PrintTransposed(const std::vector<Row>& rows) {
  std::vector<Row> lines;
  for (std::size_t i = 0; i < rows[0].size(); ++i) {
    if (rows[1][i] != "-") lines.push_back({rows[0][i], OneLine(rows[1][i])});
  }
  PrintText(Aligned(lines));
}

void Output::PrintRows(std::vector<Row> rows) const {
  if (no_headers_) rows.erase(rows.begin());
  for (Row& row : rows) std::ranges::transform(row, row.begin(), OneLine);
  PrintText(Aligned(rows));
}

}  // namespace railhead::railctl

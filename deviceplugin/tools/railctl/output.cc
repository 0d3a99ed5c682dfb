#include "deviceplugin/tools/railctl/output.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "deviceplugin/support/kubernetes/yaml.h"
#include "deviceplugin/tools/railctl/print.h"
#include "netns/base/text.h"

namespace railhead::railctl {

std::string ColumnsText(const Row& narrow, const Row& wide) {
  std::string text = Join(narrow, ", ");
  Row more = wide;
  std::erase_if(more, [&](const std::string& heading) { return Contains(narrow, heading); });
  return more.empty() ? text : text + "; with -o wide: " + Join(more, ", ");
}

bool WantsColours() {
  const char* without = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && (without == nullptr || *without == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

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
  PrintText(format_ == "yaml" ? JsonToYaml(json) : record::Dump(json, one_line || watch_ ? -1 : 2) + "\n");
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

// Output: how a command prints its report: -o table, wide, json or yaml.
//
//   options->output.AddTo(command);
//   options->output.AddWatchTo(command);
//   command->callback([...] { *status = options->output.Watched([&] { return Show(root, *options); }); });
//   options->output.PrintList("devices", state.devices);
//
// A report is a record (netns/json/record.h): JSON and YAML come from its list of fields, the columns of a
// table likewise. "wide" is a table with all columns; of prose it is the same as "table". Texts of pods,
// switches and other nodes begin no line of their own in a table. Ownership: AddTo() and AddWatchTo() have
// CLI11 write into this object, which outlives the parsing. Threads: one.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "netns/json/record_io.h"
#include "netns/json/record_table.h"

namespace railhead::railctl {

inline constexpr std::chrono::seconds kWatchPeriod{2};

// For a command's help: "DEVICE, PF, STATE; with -o wide: UVERBS".
std::string ColumnsText(const Row& narrow, const Row& wide);
template <typename T>
std::string ColumnsOf() {
  return ColumnsText(record::RowOf<T>(nullptr, false, true), record::RowOf<T>(nullptr, true, true));
}

// Standard output is a terminal that colours may be written to (no-color.org).
bool WantsColours();

class Output {
 public:
  // The option -o, which others may exclude. With it comes --no-headers.
  CLI::Option* AddTo(CLI::App* command);
  // The option --watch, which others may exclude.
  CLI::Option* AddWatchTo(CLI::App* command);

  // Returns what `show` returns. With --watch it runs `show` again and again until SIGINT or SIGTERM, and
  // returns kDone. A terminal shows the latest report. Other readers get each report that differs from the
  // one before.
  [[nodiscard]] int Watched(const std::function<int()>& show) const;

  // For people: "table" or "wide".
  [[nodiscard]] bool is_text() const { return format_ == "table" || format_ == "wide"; }

  // The list as a table, or as {key: list} with `more` before it.
  template <typename T>
  void PrintList(const char* key, const std::vector<T>& list, nlohmann::ordered_json more = {}) const {
    if (is_text()) return PrintTable(list);
    more[key] = ToJson(list);
    PrintData(more);
  }
  // What `text` makes of the report, or the report itself.
  template <typename T, typename Text>
  void Print(const T& report, Text text) const {
    if (is_text()) return PrintText(text(report));
    PrintData(ToJson(report));
  }
  // The table of `rows` that the report has; or the report itself.
  template <typename T, typename C, typename M>
  void PrintTableOf(const T& report, std::vector<M> C::*rows) const {
    if (is_text()) return PrintTable(report.*rows);
    PrintData(ToJson(report));
  }

  // Of a text of several parts.
  template <typename T>
  void PrintTable(const std::vector<T>& list) const {
    PrintRows(TableOf(list, format_ == "wide"));
  }
  // All columns of one record, a line each, without those that are empty.
  template <typename T>
  void PrintCard(const T& record) const {
    PrintTransposed(TableOf(std::vector<T>{record}, true));
  }
  // JSON over many lines, or all on one, as always with --watch; or YAML.
  void PrintData(const nlohmann::ordered_json& json, bool one_line = false) const;

 private:
  static void PrintText(const std::string& text);
  // The heading and one row.
  static void PrintTransposed(const std::vector<Row>& rows);
  // The first row is the heading.
  void PrintRows(std::vector<Row> rows) const;

  std::string format_ = "table";
  bool no_headers_ = false;
  bool watch_ = false;
};

}  // namespace railhead::railctl

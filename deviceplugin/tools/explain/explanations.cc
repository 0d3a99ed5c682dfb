#include "deviceplugin/tools/explain/explanations.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

#include "deviceplugin/services/health/rules.h"
#include "deviceplugin/tools/doctor/checks.h"
#include "deviceplugin/tools/explain/markdown.h"
#include "deviceplugin/tools/explain/pages.h"
#include "netns/base/exit_status.h"
#include "netns/base/text.h"

namespace railhead::explain {
namespace {

// A row that a page lacks has empty cells.
std::string CellOf(const MarkdownRow& row, std::size_t index) {
  return index < row.cells.size() ? PlainText(row.cells[index]) : std::string();
}

std::vector<MarkdownRow> RowsIn(std::string_view page, std::string_view section) {
  auto rows = RowsOf(page);
  std::erase_if(rows, [&](const MarkdownRow& row) { return row.section != section; });
  return rows;
}

std::string Detail(std::string_view label, const std::string& text) {
  return std::string(label) + ": " + text;
}

void AddDetail(std::string_view label, const std::string& text, Explanation& to) {
  if (!text.empty()) to.details.push_back(Detail(label, text));
}

void AddTodo(const std::string& text, Explanation& to) {
  if (!text.empty()) to.todo.push_back(text);
}

// A section of runbooks.md whose heading is a row of alerts.md.
void AddAlerts(std::vector<Explanation>& all) {
  const auto rows = RowsOf(pages::kAlerts);
  for (MarkdownSection& section : SectionsOf(pages::kRunbooks)) {
    const auto row =
        std::ranges::find_if(rows, [&](const MarkdownRow& one) { return CellOf(one, 0) == section.heading; });
    if (row == rows.end()) continue;
    Explanation& alert = all.emplace_back();
    alert.kind = NameKind::kAlert;
    alert.name = section.heading;
    alert.what = Join(section.paragraphs, " ");
    AddDetail("severity", CellOf(*row, 1), alert);
    AddDetail("for", CellOf(*row, 2), alert);
    AddDetail("fires when", CellOf(*row, 3), alert);
    alert.todo = std::move(section.bullets);
    alert.page = "docs/reference/runbooks.md#" + ToLower(alert.name);
  }
}

void AddCniErrors(std::vector<Explanation>& all) {
  const auto messages = RowsIn(pages::kTroubleshooting, "The pod does not start");
  for (const MarkdownRow& row : RowsIn(pages::kCni, "Error codes")) {
    Explanation& error = all.emplace_back();
    error.kind = NameKind::kCniError;
    error.name = CellOf(row, 0);
    error.what = CellOf(row, 1);
    for (const MarkdownRow& message : messages) {
      if (CellOf(message, 0) != error.name) continue;
      AddTodo("\"" + CellOf(message, 1) + "\" (" + CellOf(message, 2) + "): " + CellOf(message, 3), error);
    }
    error.page = error.todo.empty() ? "docs/reference/cni.md#error-codes"
                                    : "docs/operate/troubleshooting.md#the-pod-does-not-start";
  }
}

void AddExitStatuses(std::vector<Explanation>& all) {
  for (const ExitMeaning& one : kExitMeanings) {
    Explanation& status = all.emplace_back();
    status.kind = NameKind::kExitStatus;
    status.name = std::to_string(one.status);
    status.what = one.meaning;
    AddDetail("programs", std::string(one.programs), status);
    status.page = "docs/reference/programs.md#exit-statuses";
  }
}

void AddNodeStatus(std::vector<Explanation>& all) {
  const std::string page = "docs/operate/node-status.md";
  for (const MarkdownRow& row : RowsIn(pages::kKubernetes, "Labels and annotations")) {
    const std::string on = CellOf(row, 1);
    const bool is_taint = on == "node, taint";
    if (!is_taint && on != "node, condition") continue;
    all.push_back({is_taint ? NameKind::kTaint : NameKind::kCondition,
                   CellOf(row, 0),
                   CellOf(row, 2),
                   {},
                   {"railctl health: which devices are unhealthy, and why"},
                   page + (is_taint ? "#the-taint" : "#the-condition")});
  }
  for (const MarkdownRow& row : RowsIn(pages::kNodeStatus, "The condition")) {
    all.push_back({NameKind::kConditionReason,
                   CellOf(row, 1),
                   "Reason of the condition RailsReady with status " + CellOf(row, 0) + ".",
                   {Detail("message", CellOf(row, 2))},
                   {},
                   page + "#the-condition"});
  }
  for (const MarkdownRow& row : RowsIn(pages::kNodeStatus, "Events")) {
    Explanation& event = all.emplace_back();
    event.kind = NameKind::kEvent;
    event.name = CellOf(row, 0);
    event.what = CellOf(row, 2);
    AddDetail("type", CellOf(row, 1), event);
    AddTodo(CellOf(row, 3), event);
    event.page = page + "#events";
  }
}

void AddDoctorChecks(std::vector<Explanation>& all) {
  const auto rows = RowsOf(pages::kDoctorChecks);
  for (const doctor::Check& check : doctor::AllChecks()) {
    Explanation& one = all.emplace_back();
    one.kind = NameKind::kDoctorCheck;
    one.name = check.id;
    one.what = check.title;
    AddDetail("why", std::string(check.why), one);
    one.page = "docs/reference/doctor-checks.md";
    const auto row =
        std::ranges::find_if(rows, [&](const MarkdownRow& it) { return CellOf(it, 0) == check.id; });
    if (row == rows.end()) continue;
    AddDetail("checks", CellOf(*row, 1), one);
    AddDetail("findings (F failure, W warning, N note)", CellOf(*row, 2), one);
    AddTodo(CellOf(*row, 3), one);
  }
}

// runbooks.md has one fix for several rules.
void AddFixOf(const std::string& rule, Explanation& to) {
  for (const MarkdownRow& row : RowsIn(pages::kRunbooks, "RailheadDeviceUnhealthy")) {
    if (!row.cells.empty() && Contains(CodeIn(row.cells[0]), rule)) AddTodo(CellOf(row, 1), to);
  }
}

void AddHealthRules(std::vector<Explanation>& all) {
  for (const MarkdownRow& row : RowsIn(pages::kHealth, "Rules")) {
    Explanation& rule = all.emplace_back();
    rule.kind = NameKind::kHealthRule;
    rule.name = CellOf(row, 0);
    rule.what = CellOf(row, 1);
    AddDetail("of", CellOf(row, 2), rule);
    AddDetail("unhealthy after", CellOf(row, 3) + " s", rule);
    AddDetail("healthy after", CellOf(row, 4) + " s", rule);
    AddFixOf(rule.name, rule);
    AddTodo("railctl health --history: what began and ended lately", rule);
    rule.page = "docs/operate/health.md#rules";
  }
}

void AddMetrics(std::vector<Explanation>& all) {
  constexpr std::size_t kCellsOfMetric = 4;  // name, type, labels, what
  for (const MarkdownRow& row : RowsOf(pages::kMetrics)) {
    const std::string name = CellOf(row, 0);
    if (row.cells.size() == kCellsOfMetric) {
      Explanation& metric = all.emplace_back();
      metric.kind = NameKind::kMetric;
      metric.name = name;
      metric.what = CellOf(row, 3);
      AddDetail("type", CellOf(row, 1), metric);
      AddDetail("labels", CellOf(row, 2), metric);
      metric.page = "docs/reference/metrics.md";
    } else if (name == "railhead_rdma_*") {
      all.push_back({NameKind::kMetric,
                     name,
                     "RDMA hardware counter under the driver's name.",
                     {Detail("counts RDMA traffic", CellOf(row, 1))},
                     {},
                     "docs/reference/metrics.md"});
    }
  }
}

// A histogram's series have suffixes, and a family may stand for names of drivers.
bool IsSeriesOf(const std::string& name, const Explanation& metric) {
  if (metric.kind != NameKind::kMetric) return false;
  if (metric.name.ends_with('*')) return name.starts_with(metric.name.substr(0, metric.name.size() - 1));
  return std::ranges::any_of(std::array{"_bucket", "_sum", "_count"},
                             [&](const char* suffix) { return name == metric.name + suffix; });
}

// "RailIntermittentLoss, railhead_probe_loss_ratio": names that have `part` in them.
std::string NamesWith(const std::string& part, const std::vector<Explanation>& all) {
  constexpr std::size_t kShortest = 3;
  constexpr std::size_t kMost = 8;
  std::vector<std::string> names;
  if (part.size() < kShortest) return {};
  for (const Explanation& one : all) {
    if (ToLower(one.name).find(part) != std::string::npos && !Contains(names, one.name))
      names.push_back(one.name);
  }
  if (names.size() > kMost) {
    names.resize(kMost);
    names.emplace_back("...");
  }
  return Join(names, ", ");
}

Error UnknownName(const std::string& name, const std::vector<Explanation>& all) {
  // With or without the prefix of a label or taint.
  const std::string word = ToLower(name.substr(name.rfind('/') + 1));
  if (const std::string names = NamesWith(word, all); !names.empty()) {
    return {ErrorCode::kNotFound, "nothing of Railhead is called '" + name + "'",
            "these have it in their names: " + names, 0};
  }
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const Explanation& one : all) names.push_back(ToLower(one.name));
  const auto near = Nearest(ToLower(name), names);
  const auto meant =
      std::ranges::find_if(all, [&](const Explanation& one) { return near && ToLower(one.name) == *near; });
  return {ErrorCode::kNotFound, "nothing of Railhead is called '" + name + "'",
          meant == all.end() ? "all names: railctl explain" : "did you mean " + meant->name + "?", 0};
}

}  // namespace

std::vector<Explanation> AllExplanations() {
  std::vector<Explanation> all;
  AddAlerts(all);
  AddCniErrors(all);
  AddExitStatuses(all);
  AddNodeStatus(all);
  AddDoctorChecks(all);
  AddHealthRules(all);
  AddMetrics(all);
  std::ranges::stable_sort(all, {}, &Explanation::kind);
  return all;
}

Result<std::vector<Explanation>> Explain(const std::string& name) {
  const std::vector<Explanation> all = AllExplanations();
  const std::string wanted = ToLower(name);
  std::vector<Explanation> found;
  std::ranges::copy_if(all, std::back_inserter(found),
                       [&](const Explanation& one) { return ToLower(one.name) == wanted; });
  if (!found.empty()) return found;
  std::ranges::copy_if(all, std::back_inserter(found),
                       [&](const Explanation& one) { return IsSeriesOf(wanted, one); });
  if (found.empty()) return Fail(UnknownName(name, all));
  return found;
}

}  // namespace railhead::explain

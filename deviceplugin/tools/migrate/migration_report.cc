#include "deviceplugin/tools/migrate/migration_report.h"

#include <algorithm>

#include "netns/base/text.h"

namespace railhead::migrate {
namespace {

// For a cell of a Markdown table.
std::string Cell(const std::string& text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') {
      cell += "\\|";
    } else {
      cell += c == '\n' || c == '\r' ? ' ' : c;
    }
  }
  return cell;
}

void AddDecisions(const MigrationReport& report, std::string* text) {
  std::string decisions;
  for (const DocumentReport& document : report.documents) {
    for (const KeyResult& key : document.keys) {
      if (key.outcome == KeyOutcome::kNeedsDecision)
        decisions += "- " + document.source + ": `" + key.key + "`: " + key.what + "\n";
    }
  }
  *text += decisions.empty() ? "All keys are carried over.\n" : "## To decide\n\n" + decisions;
}

void AddDocument(const DocumentReport& document, std::string* text) {
  *text += "\n## " + document.source + "\n\n";
  if (!document.file.empty()) *text += "Became `" + document.file + "`.\n";
  for (const std::string& remark : document.remarks) *text += remark + ".\n";
  if (!document.file.empty() || !document.remarks.empty()) *text += "\n";
  *text += "| key | | what |\n|---|---|---|\n";
  for (const KeyResult& key : document.keys) {
    *text +=
        "| `" + Cell(key.key) + "` | " + std::string(WordOf(key.outcome)) + " | " + Cell(key.what) + " |\n";
  }
}

}  // namespace

bool MigrationReport::NeedsDecision() const {
  return std::ranges::any_of(documents, [](const DocumentReport& document) {
    return Contains(document.keys, KeyOutcome::kNeedsDecision, &KeyResult::outcome);
  });
}

std::string ReportAsMarkdown(const MigrationReport& report) {
  std::string text = "# Migration to Railhead\n\n";
  AddDecisions(report, &text);
  for (const DocumentReport& document : report.documents) AddDocument(document, &text);
  if (!report.untouched.empty()) text += "\n## Not touched\n\n";
  for (const std::string& line : report.untouched) text += "- " + line + "\n";
  if (!report.steps.empty()) text += "\n## Steps\n\n";
  for (std::size_t i = 0; i < report.steps.size(); ++i)
    text += std::to_string(i + 1) + ". " + report.steps[i] + "\n";
  return text;
}

}  // namespace railhead::migrate

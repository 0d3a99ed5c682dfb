#include "deviceplugin/tools/migrate/report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace railhead::migrate {
namespace {

using Json = nlohmann::json;

bool HasKeys(const Json& value) {
  if (value.is_object()) return !value.empty();
  return value.is_array() && std::any_of(value.begin(), value.end(), HasKeys);
}

bool IsAtOrBelow(std::string_view key, std::string_view pointer) {
  return key.starts_with(pointer) && (key.size() == pointer.size() || key[pointer.size()] == '/');
}

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
    for (const KeyFate& key : document.keys) {
      if (key.fate == Fate::kDecide)
        decisions += "- " + document.source + ": `" + key.key + "`: " + key.what + "\n";
    }
  }
  *text += decisions.empty() ? "All is carried over.\n" : "## To decide\n\n" + decisions;
}

void AddDocument(const DocumentReport& document, std::string* text) {
  *text += "\n## " + document.source + "\n\n";
  if (!document.file.empty()) *text += "Became `" + document.file + "`.\n";
  for (const std::string& remark : document.remarks) *text += remark + ".\n";
  if (!document.file.empty() || !document.remarks.empty()) *text += "\n";
  *text += "| key | | what |\n|---|---|---|\n";
  for (const KeyFate& key : document.keys) {
    *text += "| `" + Cell(key.key) + "` | " + std::string(NameOf(key.fate)) + " | " + Cell(key.what) + " |\n";
  }
}

}  // namespace

std::string_view NameOf(Fate fate) {
  switch (fate) {
    case Fate::kKept:
      return "kept";
    case Fate::kChanged:
      return "changed";
    case Fate::kDropped:
      return "dropped";
    case Fate::kDecide:
      break;
  }
  return "decide";
}

std::string Below(std::string_view pointer, std::string_view key) {
  std::string below(pointer);
  below += '/';
  for (const char c : key) {
    if (c == '~') {
      below += "~0";
    } else if (c == '/') {
      below += "~1";
    } else {
      below += c;
    }
  }
  return below;
}

KeyLedger::KeyLedger(const Json& document) {
  Add(document, "");
}

void KeyLedger::Add(const Json& value, const std::string& pointer) {
  if (!HasKeys(value)) {
    Line line;
    line.fate = {pointer, Fate::kDecide, "is not known here"};
    if (value.is_null()) line = {{pointer, Fate::kDropped, "null is as if it were absent"}, true};
    lines_.push_back(std::move(line));
    return;
  }
  if (value.is_object()) {
    for (const auto& item : value.items()) Add(item.value(), Below(pointer, item.key()));
    return;
  }
  for (std::size_t i = 0; i < value.size(); ++i) Add(value[i], Below(pointer, std::to_string(i)));
}

void KeyLedger::Set(const std::string& pointer, Fate fate, const std::string& what) {
  for (Line& line : lines_) {
    if (IsAtOrBelow(line.fate.key, pointer)) line = {{line.fate.key, fate, what}, true};
  }
}

void KeyLedger::SetRest(const std::string& pointer, Fate fate, const std::string& what) {
  for (Line& line : lines_) {
    if (!line.said && IsAtOrBelow(line.fate.key, pointer)) line = {{line.fate.key, fate, what}, true};
  }
}

std::vector<KeyFate> KeyLedger::Fates() const {
  std::vector<KeyFate> fates;
  fates.reserve(lines_.size());
  for (const Line& line : lines_) fates.push_back(line.fate);
  return fates;
}

bool MigrationReport::NeedsDecision() const {
  return std::any_of(documents.begin(), documents.end(), [](const DocumentReport& document) {
    return std::any_of(document.keys.begin(), document.keys.end(),
                       [](const KeyFate& key) { return key.fate == Fate::kDecide; });
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

nlohmann::ordered_json ReportAsJson(const MigrationReport& report) {
  using Ordered = nlohmann::ordered_json;
  Ordered json;
  json["needsDecision"] = report.NeedsDecision();
  json["documents"] = Ordered::array();
  for (const DocumentReport& document : report.documents) {
    Ordered one;
    one["source"] = document.source;
    if (!document.file.empty()) one["file"] = document.file;
    if (!document.remarks.empty()) one["remarks"] = document.remarks;
    one["keys"] = Ordered::array();
    for (const KeyFate& key : document.keys)
      one["keys"].push_back({{"key", key.key}, {"fate", std::string(NameOf(key.fate))}, {"what", key.what}});
    json["documents"].push_back(std::move(one));
  }
  json["untouched"] = report.untouched;
  json["steps"] = report.steps;
  return json;
}

}  // namespace railhead::migrate

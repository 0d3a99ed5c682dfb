// The report of a migration: the outcome of each key of each document, and the steps that are left.
//
// Threads: values, pure functions.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/tools/migrate/key_outcomes.h"
#include "netns/json/record.h"

namespace railhead::migrate {

struct DocumentReport {
  std::string source;  // "nads.json: NetworkAttachmentDefinition default/rail0"
  std::string file;    // the resulting file, by its name in the output; "": none
  std::vector<std::string> remarks;
  std::vector<KeyResult> keys;

  static void List(auto& f) {
    f("source", &DocumentReport::source);
    f("file", &DocumentReport::file, kSparseField);
    f("remarks", &DocumentReport::remarks, kSparseField);
    f("keys", &DocumentReport::keys);
  }
};

struct MigrationReport {
  std::vector<DocumentReport> documents;
  std::vector<std::string> untouched;  // documents that are not of the suite, a line each
  std::vector<std::string> steps;      // how to apply the files, in this order

  [[nodiscard]] bool NeedsDecision() const;

  static void List(auto& f) {
    f.Output("needsDecision", &MigrationReport::NeedsDecision);
    f("documents", &MigrationReport::documents);
    f("untouched", &MigrationReport::untouched);
    f("steps", &MigrationReport::steps);
  }
};

std::string ReportAsMarkdown(const MigrationReport& report);

}  // namespace railhead::migrate

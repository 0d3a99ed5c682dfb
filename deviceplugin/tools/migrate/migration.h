// From the configuration of the SR-IOV suite to Railhead's: fabric.json, the networks, and the outcome of
// each key.
//
// The migration invents nothing. If the documents lack a value, or Railhead works differently, the report
// asks for a decision. Railhead's own parsers have read every file of the result.
// Threads: pure function. Errors: kMalformed, kInvalid, kConflict, kUnsupported, naming document and key.
// After an error nothing is returned.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/tools/migrate/documents.h"
#include "deviceplugin/tools/migrate/migration_report.h"
#include "deviceplugin/tools/migrate/network.h"
#include "netns/base/result.h"

namespace railhead::migrate {

struct OutputFile {
  std::string name;
  std::string content;
};

struct Outcome {
  std::vector<OutputFile> files;  // fabric.json, nad_NAMESPACE_NAME.json, report.md
  MigrationReport report;
};

Result<Outcome> Migrate(const Documents& documents, const Options& options);

}  // namespace railhead::migrate

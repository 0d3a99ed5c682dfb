// From the configuration of the SR-IOV suite to Railhead's: fabric.json, the networks, and what became of
// each key.
//
// Nothing is made up. What the documents do not say, and what Railhead does otherwise, is a decision that
// the report asks for. All that comes out was read by Railhead's own parsers.
// Threads: pure function. Errors: kMalformed, kInvalid, kConflict, kUnsupported, naming document and key;
// then there is no outcome at all.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/tools/migrate/documents.h"
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

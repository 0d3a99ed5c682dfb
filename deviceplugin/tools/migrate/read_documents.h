// The documents of a migration out of files and directories.
//
// Of a directory: its JSON and YAML files, and host-local's state, in itself or in the directories in it
// (/var/lib/cni/networks has one for each network). Other files are told of as not touched.
// Threads: reads the file system only. Errors: those of AddDocuments(); kNotFound; kInvalid when there is
// nothing of the SR-IOV suite.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/tools/migrate/documents.h"
#include "netns/base/result.h"

namespace railhead::migrate {

Result<Documents> ReadDocuments(const std::vector<std::string>& paths);

}  // namespace railhead::migrate

// Reads the documents of a migration from files and directories.
//
// From a directory it reads JSON and YAML files, and host-local's state. That state may be in the directory
// or its subdirectories (/var/lib/cni/networks has one for each network). The report lists other files as not
// touched.
// Threads: reads the file system only. Errors: those of AddDocuments(); kNotFound; kInvalid without any
// document of the SR-IOV suite.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/tools/migrate/documents.h"
#include "netns/base/result.h"

namespace railhead::migrate {

Result<Documents> ReadDocuments(const std::vector<std::string>& paths);

}  // namespace railhead::migrate

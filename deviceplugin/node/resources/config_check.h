// Whether a configuration is one, and what this node would make of it.
//
// The file is read as railheadd would read it: sriov-network-device-plugin's config.json
// or fabric.json, told apart by their keys.
// Threads: reads the file system only. Errors: those of MakePlan(); kInvalid for a file
// that is neither.
#pragma once

#include <string>

#include "deviceplugin/node/resources/advertised.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

Result<ConfigSource> TellConfig(const Root& root, const std::string& path,
                                const std::string& resource_prefix);

// For people: a line per resource with its devices, then the functions that are in none,
// with the reason.
std::string PlanAsText(const Plan& plan);

}  // namespace railhead

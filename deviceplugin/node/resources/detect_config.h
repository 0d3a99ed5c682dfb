// Whether a file is a configuration, and what this node would make from the file.
//
// The file is read as railheadd would read it: as sriov-network-device-plugin's config.json or as
// fabric.json, whichever its keys show. Threads: reads the file system only. Errors: those of MakePlan();
// kInvalid for a file that is neither.
#pragma once

#include <string>

#include "deviceplugin/node/resources/plan.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::resources {

Result<ConfigSource> DetectConfig(const Root& root, const std::string& path,
                                  const std::string& resource_prefix);

// For people: a line per resource with its devices, then the functions that are not in any, with the reason.
std::string PlanAsText(const Plan& plan);

}  // namespace railhead::resources

// Whether a file is a configuration, and what this node would make from the file.
//
// The file is read as railheadd would read it: as sriov-network-device-plugin's config.json or as
// fabric.json, whichever its keys show. Threads: reads the file system only. Errors: those of TakeSnapshot();
// kInvalid for a file that is neither.
#pragma once

#include <string>

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

Result<ConfigSource> DetectConfig(const Root& root, const std::string& path,
                                  const std::string& resource_prefix);

// For people: a line per resource with its devices, then the functions that are not in any, with the reason.
std::string SnapshotAsText(const NodeSnapshot& node);

}  // namespace railhead

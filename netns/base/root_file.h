// A file that root's decisions depend on, opened: for readers that do not hold it whole. Others call
// ReadRootFile (netns/base/files.h).
// Threads: thread-safe.
#pragma once

#include <optional>
#include <string>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead {

// For reading. nullopt when the file (or its directory) does not exist. Opens it only if it is a regular file
// (opening a watchdog starts it) and belongs to root or to us.
Result<std::optional<UniqueFd>> OpenRootFile(const std::string& path);

}  // namespace railhead

// Files that root's decisions depend on. ReadRootFile (netns/base/files.h) reads them whole.
//
// The rule: the file is a regular one (opening a watchdog starts it). It belongs to root or to us, and
// neither group nor others may write to it. The same holds for the folder in which it is looked for, also
// where the file does not exist, and for the folder in which a link leads to it. A folder with the sticky bit
// may be writable. Errors: kPermission names the file or folder, its owner or its mode, and the command that
// corrects it; kInvalid: not a regular file. Threads: thread-safe.
#pragma once

#include <optional>
#include <string>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead {

// For reading, for readers that do not hold it whole. nullopt when the file (or its directory) does not
// exist.
Result<std::optional<UniqueFd>> OpenRootFile(const std::string& path);

// The rule alone: reads nothing.
Result<void> CheckRootFile(const std::string& path);

// As ReadRootFile, for a file that may come from a ConfigMap. kubelet makes the folder of such a volume,
// which has only links, writable to all (0777), in a folder that is root's alone. So only the folder of the
// file itself counts.
Result<std::optional<std::string>> ReadVolumeFile(const std::string& path);
Result<void> CheckVolumeFile(const std::string& path);

}  // namespace railhead

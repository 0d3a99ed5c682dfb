// Pods' network namespaces, named by a path as container runtimes do it.
// Threads: any.
#pragma once

#include <string>

#include "netns/base/result.h"

namespace railhead::crash {

// A new namespace with its lo up, mounted on `path`, which must not be there.
Result<void> MakePodNetns(const std::string& path);

// Removes the name, as a runtime does after a sandbox's end. The namespace ends when no process holds it.
Result<void> RemovePodNetns(const std::string& path);

}  // namespace railhead::crash

// Pods' network namespaces, named by a path as container runtimes do it.
// Threads: any.
#pragma once

#include <string>

#include "netns/base/result.h"

namespace railhead::crash {

// A new namespace with its lo up, mounted on `path`, which must not be there.
Result<void> MakePodNetns(const std::string& path);

// Takes the name away, as a runtime does when the sandbox is gone: the namespace dies
// when nobody holds it any more.
Result<void> RemovePodNetns(const std::string& path);

}  // namespace railhead::crash

// Folders of Railhead's own state, in which nobody else can plant anything.
//
// The tops of the state (/run/railhead, /run/cdi, /var/run/k8s.cni.cncf.io, /var/lib/railhead) and every
// folder below them have to be directories, not links to one, that root or who runs this owns and that
// nobody else may write into; the folder that holds a top must not be open to all without the sticky bit.
// Whoever could change a folder could put links and pipes where files are written, read and removed, and
// what was checked once would be another thing later. What lies above, and links on the way to it (as
// /var/run is one), is the system's. A path that is below no top is not checked.
// Errors: kInvalid, naming the folder, what is wrong and what to do. Threads: pure functions over files.
#pragma once

#include <sys/types.h>

#include <string>

#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

// `folder` and what lies between it and its top, as far as it is there.
Result<void> CheckStateFolder(const Root& root, const std::string& folder);

// All folders that do not belong to one pod or device, as far as they are there: before anything is
// read or written.
Result<void> CheckStateFolders(const Root& root);

// mkdir -p, and checked. Existing folders keep their mode.
Result<void> MakeStateFolder(const Root& root, const std::string& folder, mode_t mode = 0755);

// The same for the folder that `file` lies in.
Result<void> MakeStateFolderOf(const Root& root, const std::string& file, mode_t mode = 0755);

}  // namespace railhead

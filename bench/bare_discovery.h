// What a look at the node costs without Railhead: every attribute and link that it needs, read once
// with the fewest system calls, into a buffer, without a thought.
//
// Root's prefix, then the paths of sysfs. Threads: thread-safe.
// Errors: kIo when the devices cannot be listed. What is absent is not read.
#pragma once

#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::bench {

struct BareDiscovery {
  int functions = 0;
  int files = 0;  // attributes, links and directories that were read
};

// railheadd's discovery: of every network function.
Result<BareDiscovery> ReadBare(const Root& root);

// What `railctl doctor` needs: which functions are PFs, the VFs of each, which function each RDMA
// device is on, name and network namespace of each process. What it needs of PFs alone is left out.
Result<BareDiscovery> ReadBareForDoctor(const Root& root);

}  // namespace railhead::bench

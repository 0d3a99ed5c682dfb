// The lower bound of a discovery: reads every attribute and link that a discovery needs. It reads each once
// into a buffer, with the fewest system calls, and interprets nothing.
//
// Paths are those of sysfs below Root's prefix. Threads: thread-safe.
// Errors: kIo when the devices cannot be listed. A missing attribute is skipped.
#pragma once

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::bench {

struct BareDiscovery {
  int functions = 0;
  int files = 0;  // attributes, links and directories that were read
};

// railheadd's discovery: of every network function.
Result<BareDiscovery> ReadBare(const Root& root);

// What `railctl doctor` needs: which functions are PFs, the VFs of each, and the function of each RDMA
// device. Also the name and network namespace of each process. It omits what the doctor needs of PFs alone.
Result<BareDiscovery> ReadBareForDoctor(const Root& root);

}  // namespace railhead::bench

// What discovery costs without Railhead: every attribute and link that it needs of every network
// function, read once with the fewest system calls, into a buffer, without a thought.
//
// Root's prefix, then the paths of sysfs. Threads: thread-safe.
// Errors: kIo when the devices cannot be listed. What is absent is not read.
#pragma once

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::bench {

struct BareDiscovery {
  int functions = 0;
  int files = 0;  // attributes, links and directories that were read
};

Result<BareDiscovery> ReadBare(const Root& root);

}  // namespace railhead::bench

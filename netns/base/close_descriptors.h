// Closes what a forked child has inherited.
//
// Close-on-exec does not help a child that goes on without exec. It keeps the open file descriptions of its
// parent, whatever the parent's threads do with theirs: flock(2) locks stay held, sockets and pipes stay
// open. Threads: for the child of a fork, which has one.
#pragma once

#include <vector>

namespace railhead {

// All descriptors from `first` on but those of `kept`.
void CloseDescriptors(int first, std::vector<int> kept = {});

}  // namespace railhead

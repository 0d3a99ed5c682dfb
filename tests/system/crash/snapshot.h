// All that an attachment may change, as lines of text: two states are the same when
// their lines are.
//
// Namespaces (raw_state.h), RDMA devices and the RDMA subsystem's mode, the files of
// /run/railhead, /run/cdi and /var/lib/railhead with their content, and the addresses
// that the store says are held. Not part of it: lock files, which stay on purpose, and
// empty directories directly below /run/railhead.
// Threads: any; takes the address store's lock for a moment.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::crash {

using Snapshot = std::vector<std::string>;  // sorted

struct World {
  Root root;
  // Paths of namespaces besides this process's own, with the names that they have in
  // the lines. One that is not there shows nothing.
  std::vector<std::pair<std::string, std::string>> namespaces;
};

Result<Snapshot> TakeSnapshot(const World& world);

// "- line" for each that is only in `before`, "+ line" for those only in `after`; empty
// when there are none.
std::string Difference(const Snapshot& before, const Snapshot& after);

}  // namespace railhead::crash

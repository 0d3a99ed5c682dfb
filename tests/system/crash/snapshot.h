// Everything that an attachment may change, as lines of text. Two states are equal when their lines are
// equal.
//
// It covers namespaces (raw_state.h), RDMA devices and the RDMA subsystem's mode, and the addresses that the
// store holds. It also covers the files of /run/railhead, /run/cdi and /var/lib/railhead with their content.
// It omits lock files, which stay on purpose, and empty directories directly below /run/railhead.
// Threads: any; takes the address store's lock for a moment.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::crash {

using Snapshot = std::vector<std::string>;  // sorted

struct World {
  Root root;
  // Paths of namespaces in addition to this process's own, with their names in the lines. A missing namespace
  // adds no lines.
  std::vector<std::pair<std::string, std::string>> namespaces;
};

Result<Snapshot> TakeSnapshot(const World& world);

// "- line" for each line that is only in `before`, "+ line" for each that is only in `after`; empty when
// equal.
std::string Difference(const Snapshot& before, const Snapshot& after);

}  // namespace railhead::crash

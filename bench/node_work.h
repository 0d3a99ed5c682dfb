// What railheadd's own work costs with many VFs, measured in this process: looking at the node,
// Allocate without waiting for the disk, preferred allocation, a look at health.
//
// The series are of the group kNode (report.h). Times are wall-clock time of one thread, "CPU" is its
// processor time. `root` is a tree of node_tree.h on a tmpfs: Allocate's own work is measured there,
// where a durable write costs nothing. Then its /var/lib is made a link to `disk`, an
// existing directory on a disk, and Allocate takes turns with one durable write by itself.
// Errors: what the measured code says.
#pragma once

#include <string>

#include "bench/record.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::bench {

struct NodeRounds {
  int discovery = 20;
  int allocations = 2000;
  int preferences = 1000;
};

Result<void> MeasureNodeWork(const Root& root, const std::string& disk, const NodeRounds& rounds,
                             Record* record);

}  // namespace railhead::bench

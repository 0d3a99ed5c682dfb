// railheadd as a process with many VFs, served to a kubelet stand-in in this one: memory, what
// kubelet waits for, how soon a change is told, and what it costs while nothing happens.
//
// The series are of the group kNode (report.h). The tree below `root` is changed and restored: it is
// one of node_tree.h. The child ends with the measurement.
// Errors: kTimeout when railheadd does not do its part in a minute, with its log.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench/record.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::bench {

struct NodeDaemonSetting {
  Root root;
  std::string program;  // path of railheadd
  std::size_t devices = 0;
  bool late = false;  // only memory and the first list
  int allocations = 2000;
  int preferences = 500;
  int changes = 10;
  std::chrono::seconds idle{60};
};

Result<void> MeasureNodeDaemon(const NodeDaemonSetting& setting, Record* record);

}  // namespace railhead::bench

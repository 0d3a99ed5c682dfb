// /metrics/nics with every VF in a pod: collecting and writing the page, beside the kernel's answers alone.
//
// Each VF is in a network namespace of its own, where the loopback device stands for it: what is asked of the
// kernel is the same. PFs are the network devices of that name in the caller's namespace, without VFs; RDMA
// devices are not there. The series are of the group kNode (report.h). The tree below `root` is one of
// node_tree.h. Errors: kConflict when the page does not tell of all.
#pragma once

#include "bench/record.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::bench {

Result<void> MeasureNics(const Root& root, int rounds, Record* record);

}  // namespace railhead::bench

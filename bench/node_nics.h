// /metrics/nics with every VF in a pod: collecting and writing the page, beside the kernel's answers alone;
// then how long others wait for the kernel meanwhile (rtnl_work.h).
//
// Each VF is in a network namespace of its own, where the loopback device stands for it: what is asked of the
// kernel is the same. PFs are the network devices of that name in the caller's namespace, without VFs; RDMA
// devices are not there. The series are of the groups kNode and kRtnl (report.h). The tree below `root` is
// one of node_tree.h. Errors: kConflict when the page does not tell of all.
#pragma once

#include "bench/record.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::bench {

Result<void> MeasureNics(const Root& root, int rounds, Record* record);

// The second part on the node as it is: what the journal has in pods, with PFs that tell of VFs and RDMA
// devices, which have to be there. The series are of the group kGuestRtnl.
Result<void> MeasureRealNics(const Root& root, int rounds, Record* record);

}  // namespace railhead::bench

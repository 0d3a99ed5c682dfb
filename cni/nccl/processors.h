// What NCCL says of a node's processors, in its words (src/graph/xml.cc, ncclTopoGetXmlFromCpu).
//
// Reads /proc/cpuinfo and /sys below `root` at each call. Threads: thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

// Attribute and value, in NCCL's order: arch; on x86 also vendor, familyid and modelid, which NCCL
// makes of CPUID itself: an extended family counts there sixteenfold (a Zen 4 is 175, not 25).
// kUnsupported for another kind of processor than NCCL runs on.
Result<std::vector<std::pair<std::string, std::string>>> ProcessorAttributes(const Root& root);

// The processors of a NUMA node as a mask: "00000000,ffffffff". Empty when the kernel knows no such
// node, or when the mask is longer than NCCL reads.
Result<std::string> NodeAffinity(const Root& root, int numa_node);

}  // namespace railhead

// What NCCL says of a node's processors and of PCIe links, in its words (src/graph/xml.cc).
//
// Reads /proc/cpuinfo and /sys below `root` at each call. Threads: thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

// Attribute and value, in NCCL's order (ncclTopoGetXmlFromCpu): arch; on x86 also vendor, familyid and
// modelid, which NCCL makes of CPUID itself: an extended family counts there sixteenfold (a Zen 4 is 175, not
// 25). kUnsupported for another kind of processor than NCCL runs on.
Result<std::vector<std::pair<std::string, std::string>>> ProcessorAttributes(const Root& root);

// The processors of a NUMA node as a mask: "00000000,ffffffff". Empty when the kernel knows no such
// node, or when the mask is longer than NCCL reads.
Result<std::string> NodeAffinity(const Root& root, int numa_node);

// What a link can do, as NCCL asks for it (src/graph/xml.cc, ncclTopoGetXmlFromSys): the slower
// of the function and of the port above it, by max_link_speed and max_link_width. The maximum,
// since links sleep at a lower speed, and a VF has no current one of its own.
struct PcieLink {
  int generation = 0;  // 1: 2.5 GT/s ... 6: 64 GT/s; 0: sysfs does not say
  int width = 0;       // lanes; 0: sysfs does not say

  bool operator==(const PcieLink&) const = default;
};
Result<PcieLink> ReadPcieLink(const Root& root, const std::string& path);

}  // namespace railhead

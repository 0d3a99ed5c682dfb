// Attributes of a node's processors and of PCIe links in NCCL's format (src/graph/xml.cc).
//
// Reads /proc/cpuinfo and /sys below `root` at each call. Threads: thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::nccl {

// Attributes and values in NCCL's order (ncclTopoGetXmlFromCpu): arch; on x86 also vendor, familyid and
// modelid. NCCL computes the family from CPUID itself: an extended family counts sixteenfold (a Zen 4 is 175,
// not 25). Errors: kUnsupported for a kind of processor that NCCL does not run on.
Result<std::vector<std::pair<std::string, std::string>>> ProcessorAttributes(const Root& root);

// The processors of a NUMA node as a mask: "00000000,ffffffff". Empty if the kernel does not know the node,
// or if the mask is longer than NCCL reads.
Result<std::string> NodeAffinity(const Root& root, int numa_node);

// A link's speed and width as NCCL reads them (src/graph/xml.cc, ncclTopoGetXmlFromSys). Each is the lesser
// of the function's and of the port's above it, by max_link_speed and max_link_width. The maximum counts,
// since idle links run at a lower speed, and a VF has no current speed of its own.
struct PcieLink {
  int generation = 0;  // 1: 2.5 GT/s ... 6: 64 GT/s; 0: sysfs does not say
  int width = 0;       // lanes; 0: sysfs does not say

  bool operator==(const PcieLink&) const = default;
};
Result<PcieLink> ReadPcieLink(const Root& root, const std::string& path);

}  // namespace railhead::nccl

// What NCCL demands of a topology file, as a check of its text.
//
// Source: NCCL's src/graph/xml.cc and topo.cc of 2.21.5, 2.27.7 and 2.30.7, and what these did with
// such files on simulated nodes. A text that passes is taken by all three, in the same way by every
// rank of a pod. A text that does not may crash NCCL, or make it fail at its start, or, which is
// worse, make it put a NIC elsewhere in silence.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cni/nccl/topology_file.h"

namespace railhead {

// Of 16 slots NCCL fills ten itself.
inline constexpr std::size_t kMostNetAttributes = 6;

// What breaks a rule, a sentence each, "line 3: ..." where there is one. Empty: NCCL may have it.
std::vector<std::string> TopologyViolations(std::string_view text);

}  // namespace railhead

// What NCCL demands of a topology file, as a check of its text.
//
// Source: NCCL's src/graph/xml.cc and topo.cc of 2.21.5, 2.27.7 and 2.30.7, and their behaviour with such
// files on simulated nodes. All three accept a text that passes, in the same way on every rank of a pod. A
// text that does not pass may crash NCCL or make it fail at its start. Or, which is worse, NCCL silently puts
// a NIC in the wrong place.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace railhead {

// NCCL fills ten of 16 slots itself.
inline constexpr std::size_t kMostNetAttributes = 6;

// The broken rules, a sentence each, with "line 3: ..." if a line is known. Empty: the text is fit for NCCL.
std::vector<std::string> TopologyViolations(std::string_view text);

}  // namespace railhead

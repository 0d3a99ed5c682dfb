// Whether the rails hang where the fabric says: each rail's leaf against the patterns of `leaf` in
// fabric.json, and a guess what was mixed up.
//
// A pattern is one of fnmatch(3): * stands for any characters, ? for one, [abc] for one of these. Case
// matters, as it does to switches.
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/services/lldp/lldp_report.h"

namespace railhead {

bool MatchesLeaf(const std::vector<std::string>& patterns, const std::string& leaf);

// Sets `cabling`, and `because` of what is wrong. A `because` that is there already stays where nothing
// was heard.
void JudgeCabling(std::vector<RailLeaf>& rails);

}  // namespace railhead

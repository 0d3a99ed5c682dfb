// Cabling: compares each rail's switch with its `expectedSwitches` in fabric.json, and guesses which cables
// were mixed up.
//
// A pattern is one of fnmatch(3): * stands for any characters, ? for one, [abc] for one of these. Case
// matters, as it does to switches.
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/services/lldp/lldp_report.h"

namespace railhead::lldp {

bool MatchesSwitch(const std::vector<std::string>& patterns, const std::string& name);

// Sets `cabling`, and `because` for a wrong one. An earlier `because` stays where no frame was heard.
void JudgeCabling(std::vector<RailNeighbor>& rails);

}  // namespace railhead::lldp

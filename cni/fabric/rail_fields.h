// Which addresses a rail has: its part of fabric.json.
// Threads: thread-safe. Errors: the reader's.
#pragma once

#include <map>
#include <string>

#include "cni/fabric/fabric.h"
#include "netns/json/json_reader.h"

namespace railhead {

// subnet, gateway, routes, exclude, stations, nodeBlock and nodeRanges. `nodes`: Fabric::nodes.
void ReadAddressing(JsonReader& reader, const std::map<std::string, int>& nodes, Rail& rail);

// The fields of fabric.json's `handoff` that say what pods are told: `topology`, `stacks`, and the lines
// of nccl.conf: `nccl`, whose values are checked, and `env`, whose lines are taken as they stand.
// Threads: pure. Errors stick to the reader.

HandoffOptions ReadHandoffOptions(JsonReader& handoff);

}  // namespace railhead

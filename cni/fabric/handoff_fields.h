// The fields of fabric.json's `handoff` that say what pods are told: `topology`, `stacks`, and the lines
// of nccl.conf: `nccl`, whose values are checked, and `env`, whose lines are taken as they stand.
// Threads: pure. Errors stick to the reader.
#pragma once

#include "cni/fabric/fabric.h"
#include "netns/json/json_reader.h"

namespace railhead {

HandoffOptions ReadHandoffOptions(JsonReader& handoff);

}  // namespace railhead

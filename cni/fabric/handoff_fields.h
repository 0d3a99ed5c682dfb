// The fields of fabric.json's `handoff` that become lines of nccl.conf: `nccl`, whose values are
// checked, and `env`, whose lines are taken as they stand.
// Threads: pure. Errors stick to the reader.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cni/skel/json_reader.h"

namespace railhead {

std::vector<std::pair<std::string, std::string>> ReadHandoffLines(JsonReader& handoff);

}  // namespace railhead

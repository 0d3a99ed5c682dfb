// The fields of fabric.json's `policy`.
// Threads: pure. Errors stick to the reader.
#pragma once

#include "cni/fabric/policy.h"
#include "netns/json/json_reader.h"

namespace railhead {

NetworkPolicy ReadPolicy(JsonReader& root);

}  // namespace railhead

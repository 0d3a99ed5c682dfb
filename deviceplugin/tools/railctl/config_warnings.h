// What of a valid fabric.json makes ADD fail, for `railctl config check`.
//
// Each is a warning, since a network may bring what the fabric lacks (cni/fabric/add_refusals.h).
// Threads: pure function.
#pragma once

#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "netns/base/result.h"

namespace railhead::railctl {

// `what` names the file. Each warning has a JSON pointer; rails and nodes with the same fault share one.
std::vector<Error> WarningsOf(const Fabric& fabric, const std::string& what);

}  // namespace railhead::railctl

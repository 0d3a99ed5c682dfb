// The errors of a fabric.json: of the keys that all parts read, and of the objects that only services read.
// Threads: pure function.
#pragma once

#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/fabric/fabric_base.h"
#include "netns/base/result.h"

namespace railhead::fabric_follow {

// The errors of the file itself, which every node finds: of the fabric, and with groups of nodes of each
// group over the base, and of the nodes that `nodes` lists. `what` names the text in errors, which have JSON
// pointers.
std::vector<Error> ErrorsInFabric(const std::string& text, const std::string& what);
// What these nodes make of a base with groups. Nodes with the same groups make the same of it.
std::vector<Error> ErrorsOfNodes(const FabricBase& base, const std::vector<std::string>& nodes);

// The first error in what only services read. `what`: as above.
Result<void> CheckSections(const Fabric& fabric, const std::string& what);

}  // namespace railhead::fabric_follow

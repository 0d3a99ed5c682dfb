// The present fabric: what people have written, and a suggestion keeps.
//
// Its rails come first, in its order, and keep their names and all of their fields; so do its other sections.
// What nodes show otherwise is a contradiction. Only rails and nodes that it lacks are added. Ownership:
// borrows all for the call. Threads: pure functions.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/tools/fabric_suggest/findings.h"
#include "deviceplugin/tools/fabric_suggest/rails.h"

namespace railhead::fabric_suggest {

// One rail for each of the fabric's, perhaps without a PF, in its order; then the others, under names that
// are free.
void TakeNames(const Fabric& present, std::vector<AlignedRail>* aligned, Findings* findings);

// Says in what the nodes differ from the fabric's rail. `shown`: what they show, without a name. `switches`:
// those that it is connected to.
void CompareRail(const Rail& rail, const Rail& shown, const std::set<std::string>& switches,
                 Findings* findings);

}  // namespace railhead::fabric_suggest

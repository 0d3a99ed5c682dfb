// Whether a node's part of a rail has addresses for pods: for the claim of an index, `railctl config check`
// and the doctor. Threads: pure function.
#pragma once

#include <optional>
#include <string>

#include "cni/fabric/fabric.h"
#include "netns/base/result.h"

namespace railhead::address_leasing {

// Why pods of node (`node`, `index`) get no address of the rail, and the way out. nullopt: they can get one,
// the rail has no subnet, or the node leases its part.
std::optional<Error> WhyNoAddress(const Fabric& fabric, const Rail& rail, const std::string& node,
                                  std::optional<int> index);

}  // namespace railhead::address_leasing

// Why ADD refuses a node or a rail although the fabric is valid: for ADD, `railctl config check` and the
// doctor.
//
// A network can bring what the fabric lacks: addresses of its own, and the interface's name where it has one
// device. So these are not errors of the file.
// Threads: pure functions. Each error is a sentence without the rail's name, and the way out.
#pragma once

#include <optional>
#include <string>

#include "cni/fabric/fabric.h"
#include "netns/base/result.h"

namespace railhead {

// Whether the rail has a subnet of which no node gets a part.
bool DividesNothing(const Rail& rail);

// Of a rail without one, as what is said of the rail: "has no subnet".
Error WhyNoSubnet(const Fabric& fabric);

// Of a node for which rail.RangesOf() is empty.
Error WhyNoRange(const Fabric& fabric, const Rail& rail, const std::string& node, std::optional<int> index);

// Whether the rail's gateway is in that network of the rail; else why a node with it has no routes.
Result<void> CheckGatewayIn(const Rail& rail, const IpPrefix& network);

// Why interfaces cannot have the rail's name. They get it in a network of several devices (attach_plan.cc).
std::optional<Error> WhyNoInterfaceName(const Fabric& fabric, const Rail& rail);

}  // namespace railhead

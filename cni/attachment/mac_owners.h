// Whose MAC address it is that a network asks for.
//
// A pod with the MAC of somebody else on its rail takes his traffic: switches learn from what they see.
// Refused are the MACs of this node (all its interfaces, the VFs of its PFs), of the fabric's probing
// stations, those that routers share (VRRP, HSRP, GLBP), and that of whoever answers for the rail's gateway,
// as far as the host and railheadd know it. Where they do not, ADD has to see the gateway answer with another
// MAC. What pods believe says nothing: they can write what they like into their neighbour tables. Errors:
// kConflict with the owner. Threads: reads files, asks the host's rtnetlink.
#pragma once

#include <optional>

#include "cni/attachment/attach_plan.h"
#include "cni/fabric/fabric.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Of all devices of the plan that are given a MAC. `fabric`: the node's. Says in the plan whether the
// gateways have to be met.
Result<void> RefuseMacsOfOthers(const Root& root, RouteApi& host, const std::optional<Fabric>& fabric,
                                AttachPlan& plan);

}  // namespace railhead::attachment

// Refuses a requested MAC that another device or host has.
//
// A pod with the MAC of another host on its rail gets that host's traffic, since switches learn from frames.
// So this refuses the MACs of this node (all interfaces, the VFs of its PFs) and of the fabric's probe
// endpoints. It refuses MACs that routers share (VRRP, HSRP, GLBP). It refuses the MAC of the rail's gateway,
// if the host or railheadd knows that MAC. If they do not, ADD waits for the gateway to answer with another
// MAC. The neighbour tables of pods are not used: a pod can write anything into its own. Errors: kConflict
// with the owner. Threads: reads files, asks the host's rtnetlink.
#pragma once

#include <optional>

#include "cni/attachment/attach_plan.h"
#include "cni/fabric/fabric.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Checks all devices of the plan that have a requested MAC. `fabric`: the node's. Sets in the plan whether
// ADD requires an answer of the gateways.
Result<void> RefuseMacsOfOthers(const Root& root, RouteApi& host, const std::optional<Fabric>& fabric,
                                AttachPlan& plan);

}  // namespace railhead::attachment

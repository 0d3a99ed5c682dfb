// PlanIpam: which IPAM plugin gives a plan's devices their addresses, and with which configuration it runs.
//
// railhead-ipam serves all devices of an attachment in one call and one transaction. Any other plugin runs
// once for each device, with the device's name in the pod as CNI_IFNAME. Threads: pure functions. Errors:
// none.
#pragma once

#include <string>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/plugin_config.h"
#include "cni/protocol/cni_request.h"

namespace railhead::attachment {

// Sets the IPAM plugin and its runs in the plan; without a plugin it has no runs.
void PlanIpam(const CniRequest& request, AttachPlan& plan);

// The configuration of a call of plugin `type` without a plan.
std::string IpamConfigWithoutPlan(const CniRequest& request, const std::string& type,
                                  const PluginConfig& config);

}  // namespace railhead::attachment

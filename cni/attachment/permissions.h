// Whether the author of a network, and the pod that asks, may have what ADD is asked for. What depends on the
// device itself is asked where that is known: the devices in devices.h, the rail and the MAC in plan.h.
// Errors: kPermission, with the key and where root allows it. Threads: pure.
#pragma once

#include "cni/attachment/plugin_config.h"
#include "cni/fabric/call_permissions.h"
#include "cni/protocol/plugin.h"
#include "netns/base/result.h"

namespace railhead {

Result<void> CheckPermissions(const CallPermissions& may, const CniRequest& request,
                              const PluginConfig& config);

}  // namespace railhead

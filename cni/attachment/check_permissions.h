// Checks that the network and its pod may set the keys of the configuration. Permissions that depend on the
// device are checked where it is known: devices in devices.h, rail and MAC in attach_plan.h. Errors:
// kPermission, with the key and how root can allow it. Threads: pure.
#pragma once

#include "cni/attachment/plugin_config.h"
#include "cni/fabric/call_permissions.h"
#include "cni/protocol/cni_request.h"
#include "netns/base/result.h"

namespace railhead::attachment {

Result<void> CheckPermissions(const CallPermissions& may, const CniRequest& request,
                              const PluginConfig& config);

}  // namespace railhead::attachment

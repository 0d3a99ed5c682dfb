// AddCall: what one ADD reads before it changes anything, each file once.
// Ownership: `request` is borrowed. Threads: values.
#pragma once

#include <optional>

#include "cni/attachment/devices.h"
#include "cni/attachment/plugin_config.h"
#include "cni/fabric/call_permissions.h"
#include "cni/fabric/fabric.h"
#include "cni/protocol/cni_request.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::attachment {

struct AddCall {
  const CniRequest& request;
  PluginConfig config;
  std::optional<Fabric> node_fabric;  // of kFabricPath, also if the network names another
  CallPermissions may;
  DeviceChoice choice;
};

// kPermission, kInvalid with the field; see ReadPluginConfig(), CheckPermissions() and ChooseDevices().
Result<AddCall> ReadAddCall(const Root& root, const CniRequest& request);

}  // namespace railhead::attachment

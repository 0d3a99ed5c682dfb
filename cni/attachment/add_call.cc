#include "cni/attachment/add_call.h"

#include <utility>

#include "cni/attachment/check_permissions.h"

namespace railhead::attachment {
Result<AddCall> ReadAddCall(const Root& root, const CniRequest& request) {
  PluginConfig config = RH_TRY(ReadPluginConfig(request));
  auto fabric = RH_TRY(ReadFabric(root));
  CallPermissions may(fabric, request.network, request.args);
  RH_TRY(CheckPermissions(may, request, config));
  DeviceChoice choice = RH_TRY(ChooseDevices(root, request, config, may));
  return AddCall{request, std::move(config), std::move(fabric), std::move(may), std::move(choice)};
}

}  // namespace railhead::attachment

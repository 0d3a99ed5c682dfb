#include "cni/plugin/plugin.h"

namespace railhead {

Result<void> RailheadPlugin::Status(const CniRequest& request) {
  return Fail(ErrorCode::kUnsupported, "STATUS of network " + request.network);
}

}  // namespace railhead

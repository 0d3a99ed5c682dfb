#include "cni/plugin/plugin.h"

namespace railhead {

Result<void> RailheadPlugin::Gc(const CniRequest& request, const std::vector<ValidAttachment>&) {
  return Fail(ErrorCode::kUnsupported, "GC of network " + request.network);
}

}  // namespace railhead

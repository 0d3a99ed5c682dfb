#include "cni/attachment/record_tenant.h"

namespace railhead::attachment {

Result<void> RecordTenant(const Root& root, const Tenant& tenant, const AttachPlan& attach) {
  for (const DevicePlan& plan : attach.devices) {
    const auto last = RH_TRY(ReadTenant(root, plan.record.device));
    Tenant now = tenant;
    // The leftover of a device that was not reset is still there.
    if (last) now.leftover = last->leftover;
    if (last == now) continue;
    RH_TRY_WRAP(WriteTenant(root, plan.record.device, now),
                "recording who gets device " + plan.record.device);
  }
  return {};
}

}  // namespace railhead::attachment

// Devices that are on the host under a substitute name (cni/state/displaced_names.h).
#include "cni/attachment/host_names.h"
#include "cni/state/displaced_names.h"
#include "deviceplugin/services/reconcile/pass.h"

namespace railhead {

void ReconcileNames(ReconcilePass& pass) {
  if (pass.stopped) return;
  const auto devices = ListDisplacedDevices(pass.root);
  if (!devices) return pass.Add("name", "", "cannot be listed", Fail(devices.error()));
  for (const std::string& device : *devices) {
    const auto give_back = [&]() -> Result<bool> {
      const auto locks = RH_TRY(TryLock(pass.root, {device}));
      if (!locks) return false;
      const NetNs host_ns = RH_TRY(pass.kernel.HostNetns());
      const auto host = RH_TRY(pass.kernel.OpenRoute(host_ns));
      return ReturnOwnNames(pass.root, *host, device);
    };
    pass.Add("name", device, "its own name is free again", give_back());
  }
  if (const auto left = ListDisplacedDevices(pass.root); left) pass.report.displaced = left->size();
}

}  // namespace railhead

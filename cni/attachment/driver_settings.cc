#include "cni/attachment/driver_settings.h"

#include <memory>

namespace railhead::attachment {

Result<void> ReadDriverSettings(Kernel& kernel, const NetNs& host_ns, std::span<DevicePlan> plans) {
  std::unique_ptr<DeviceApi> devices;
  for (DevicePlan& device : plans) {
    if (device.record.before.user_space) continue;
    if (!devices) devices = RH_TRY(kernel.OpenDevices(host_ns));
    device.record.before.settings =
        RH_TRY_WRAP(devices->Read(device.link), "reading the settings of device " + device.record.device);
  }
  return {};
}

}  // namespace railhead::attachment

#include "deviceplugin/pools/drivers.h"

namespace railhead {

UserSpace UserSpaceOf(std::string_view driver) {
  constexpr std::string_view kVfio = "vfio-pci";
  if (driver == "uio" || driver == "uio_pci_generic" || driver == "igb_uio") return UserSpace::kUio;
  if (driver.size() < kVfio.size()) return UserSpace::kNone;
  const std::string_view end = driver.substr(driver.size() - kVfio.size());
  return end == kVfio || end == "vfio_pci" ? UserSpace::kVfio : UserSpace::kNone;
}

}  // namespace railhead

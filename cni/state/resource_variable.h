// PcideviceVariable: the environment variable in which a container finds the devices of a resource.
// Threads: pure functions. Errors: none.
#pragma once

#include <string>

namespace railhead {

// "PCIDEVICE_INTEL_COM_SRIOV_NET": upper case, '.' and '/' become '_', '-' stays,
// as in sriov-network-device-plugin.
std::string PcideviceVariable(const std::string& resource);

}  // namespace railhead

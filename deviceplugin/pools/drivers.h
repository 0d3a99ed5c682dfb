// Drivers that hand a PCI function to user space instead of to the kernel's network.
//
// Source: drivers/vfio/pci (vfio-pci and the vendors' variants of it, all named
// ...vfio-pci or ...vfio_pci), drivers/uio/uio_pci_generic.c, DPDK's igb_uio.
// Threads: pure function.
#pragma once

#include <cstdint>
#include <string_view>

namespace railhead {

enum class UserSpace : std::uint8_t { kNone, kVfio, kUio };

UserSpace UserSpaceOf(std::string_view driver);

}  // namespace railhead

// Drivers that hand a PCI function to a program instead of to the kernel's network, and by which device nodes
// the program gets it.
//
// Threads: pure functions over sysfs. Errors: kIo; an absent file is not an error.
// Source: drivers/vfio/pci (vfio-pci and the vendors' variants, all named ...vfio-pci or ...vfio_pci),
// Documentation/driver-api/vfio.rst, drivers/vfio/group.c. Also drivers/uio/uio_pci_generic.c, DPDK's
// igb_uio.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

inline constexpr const char* kVfioControl = "/dev/vfio/vfio";

enum class UserSpace : std::uint8_t { kNone, kVfio, kUio };

UserSpace UserSpaceOf(std::string_view driver);

// In a group without an IOMMU the host's node has another name than the one that programs look for.
struct UserSpaceNode {
  std::string host;
  std::string inside;  // of a container

  bool operator==(const UserSpaceNode&) const = default;
};

// The nodes of the function with this PCI address, which is bound to a driver of this kind. VFIO:
// kVfioControl, then its group's; UIO: its one. Empty: it has no node (no IOMMU group, or unbound since).
Result<std::vector<UserSpaceNode>> UserSpaceNodesOf(const Root& root, const std::string& address,
                                                    UserSpace kind);

}  // namespace railhead

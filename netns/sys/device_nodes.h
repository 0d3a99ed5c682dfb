// The character devices by which processes drive a PCI function, and the processes that have them open.
//
// Reads /proc and /sys below `root`. The kernel shows the open files of a process only to a process that may
// trace it (proc_pid_readlink in fs/proc/base.c). It does not show a process of another PID namespace at all.
// Threads: thread-safe. Errors: kIo.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

struct OpenNodes {
  std::map<std::string, std::string> by_path;  // "/dev/vfio/42" -> the process that has it open
  std::string hidden;                          // a process that does not show its open files; "": none
};
Result<OpenNodes> FindOpenNodes(const Root& root);

// Of the function with this address: its VFIO group's, its own VFIO device's (Linux 6.6), its UIO device's,
// its RDMA device's.
Result<std::vector<std::string>> NodesOf(const Root& root, const std::string& address);

// Whether somebody has the function's VFIO group. The kernel opens a group once (vfio_group_fops_open in
// drivers/vfio/group.c: EBUSY), and a device of the group keeps it open. So one open(2) tells. nullopt: the
// function has no group, or the group's node cannot be opened here.
std::optional<bool> IsVfioGroupHeld(const Root& root, const std::string& address);

// "process 4711 (python3)"
std::string DescribeProcess(const Root& root, const std::string& pid);

// Drivers that hand a PCI function to a program instead of to the kernel's network, and by which device nodes
// the program gets it.
//
// Threads: pure functions over sysfs. Errors: kIo; an absent file is not an error.
// Source: drivers/vfio/pci (vfio-pci and the vendors' variants, all named ...vfio-pci or ...vfio_pci),
// Documentation/driver-api/vfio.rst, drivers/vfio/group.c. Also drivers/uio/uio_pci_generic.c, DPDK's
// igb_uio.

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

// The character devices by which processes drive a PCI function, and the processes that have them open.
//
// Reads /proc and /sys below `root`. The kernel shows the open files of a process only to a process that may
// trace it (proc_pid_readlink in fs/proc/base.c). It does not show a process of another PID namespace at all.
// Threads: thread-safe. Errors: kIo.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

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

}  // namespace railhead

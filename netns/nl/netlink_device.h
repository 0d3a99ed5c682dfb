// DeviceApi over rtnetlink, ethtool's generic netlink, ethtool's ioctl and bpf(2).
//
// Reading asks for everything of a device in one datagram per netlink protocol: most of what a request costs
// is the system call. Ownership: owns three sockets, in the network namespace in which they were opened.
// Threads and errors: see netns/kernel.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/kernel.h"
#include "netns/ns/netns.h"

namespace railhead {

// TCX programs are read with `bpf` only, and in the own namespace.
Result<std::unique_ptr<DeviceApi>> OpenNetlinkDevices(const NetNs& ns, bool bpf);

}  // namespace railhead

namespace railhead::nl {

// BPF programs that are attached to a network device. Internal to netns/nl.
//
// The kernel looks devices up in the network namespace of the calling thread.
// Source: include/uapi/linux/bpf.h, kernel/bpf/tcx.c, kernel/bpf/mprog.c.
// Threads: thread-safe. Errors: the kernel's errno, without saying what was attempted. Asking needs
// CAP_NET_ADMIN, the others CAP_SYS_ADMIN.

// Their numbers, in the order in which they run. kInvalid: the kernel is older than TCX (Linux 6.6).
Result<std::vector<std::uint32_t>> ListTcxPrograms(int index, int attach_type);
// kBusy, kNotFound, ...: a program that a link holds cannot be detached by others than its owner.
Result<void> DetachTcxProgram(int index, int attach_type, std::uint32_t program);
// kNotFound: nothing holds the program, so it is gone.
Result<UniqueFd> OpenProgram(std::uint32_t program);

}  // namespace railhead::nl

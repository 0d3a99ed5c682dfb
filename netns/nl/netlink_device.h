// DeviceApi over rtnetlink, ethtool's generic netlink, ethtool's ioctl and bpf(2).
//
// Reading asks for everything of a device in one datagram per netlink protocol: most of what a request costs
// is the system call. Ownership: owns three sockets, in the network namespace in which they were opened.
// Threads and errors: see netns/kernel.h.
#pragma once

#include <memory>

#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/ns/netns.h"

namespace railhead {

// TCX programs are read with `bpf` only, and in the own namespace.
Result<std::unique_ptr<DeviceApi>> OpenNetlinkDevices(const NetNs& ns, bool bpf);

}  // namespace railhead

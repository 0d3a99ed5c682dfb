// Facts of network devices that sysfs has beyond rtnetlink: which devices are stacked on them.
//
// Reads below /sys of `root`; sees the network devices of the reader's namespace only. Absent devices have no
// uppers and no type.
// Threads: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// Everything that is stacked on `netdev`, directly or not (bond, bridge, VLAN,
// macvlan, ...), from the kernel's upper_NAME links. Sorted, without `netdev`.
Result<std::vector<std::string>> UpperDevicesOf(const Root& root, const std::string& netdev);

// Everything that `netdev` is stacked on, likewise. The kernel makes both links at once
// (netdev_adjacent_sysfs_add in net/core/dev.c). This is one question; otherwise each of many possible lower
// devices would have to be asked for its uppers.
Result<std::vector<std::string>> LowerDevicesOf(const Root& root, const std::string& netdev);

// An attribute of a network device. nullopt: the device is gone, or goes at this moment, for which the kernel
// answers EINVAL (netdev_show in net/core/net-sysfs.c). It gives the same answer for an attribute that a link
// has only while it is up.
Result<std::optional<std::string>> ReadNetdevAttribute(const Root& root, const std::string& netdev,
                                                       const std::string& attribute);

// The ARPHRD_ number: 1 is Ethernet, 32 InfiniBand.
Result<std::optional<int>> HardwareTypeOf(const Root& root, const std::string& netdev);

// HardwareTypeOf in the words that iproute2 and sriov-network-device-plugin's
// linkTypes use: "ether", "infiniband", "loopback"; the number for others.
std::string HardwareTypeName(int type);

}  // namespace railhead

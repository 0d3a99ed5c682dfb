// Facts of network devices that sysfs has beyond rtnetlink: which devices are stacked on them.
//
// Reads below /sys of `root`; sees the network devices of the reader's namespace only. Absent devices have no
// uppers and no type.
// Threads: thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

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

// A driver's own statistics of a network device, as `ethtool -S` shows them, by name.
//
// Where a name stands in the driver's list is remembered; it is asked for again when the
// list has another length. Names are the driver's: see its documentation.
// Source: include/uapi/linux/ethtool.h (ETHTOOL_GSTATS), net/ethtool/ioctl.c.
// Ownership: owns a socket, which stays in the network namespace in which it was opened.
// Threads: one at a time. Reading needs no privilege.

class EthtoolStats {
 public:
  // In the calling thread's network namespace.
  static Result<EthtoolStats> Open();

  // Those of `names` that the driver has; nothing when it has no statistics, or the
  // device is not in this namespace.
  Result<std::map<std::string, std::uint64_t>> Read(const std::string& netdev,
                                                    const std::vector<std::string>& names);

 private:
  struct Layout {
    std::vector<std::string> names;  // asked for
    std::uint32_t count = 0;
    std::map<std::string, std::size_t> places;  // of those that are there
  };

  explicit EthtoolStats(UniqueFd fd) : fd_(std::move(fd)) {}
  // 0: the driver has no statistics, or the device does not exist.
  [[nodiscard]] Result<std::uint32_t> CountOf(const std::string& netdev) const;
  [[nodiscard]] Result<Layout> ReadLayout(const std::string& netdev, const std::vector<std::string>& names,
                                          std::uint32_t count) const;

  UniqueFd fd_;
  std::map<std::string, Layout> layouts_;
};

}  // namespace railhead

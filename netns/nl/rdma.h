// RDMA devices as values. Source: include/uapi/rdma/rdma_netlink.h,
// drivers/infiniband/core/nldev.c.
// Threads: values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead {

// shared: every namespace sees every device; exclusive: a device belongs to one.
enum class RdmaNetnsMode : std::uint8_t { kShared, kExclusive };

struct RdmaDevice {
  std::uint32_t index = 0;
  std::string name;
  int netdev_index = 0;  // of port 1, in the netdev's own namespace; 0 when it is elsewhere or none
  std::string netdev;    // its name, "" likewise
  bool active = false;   // port 1 is ACTIVE

  bool operator==(const RdmaDevice&) const = default;
};

struct RdmaUser {
  std::uint32_t pid = 0;                 // 0: of a process that has ended, or of another PID namespace
  std::map<std::string, int> resources;  // "QP" -> how many

  bool operator==(const RdmaUser&) const = default;
};

// The order in which the kernel lists RDMA devices, and with it ibv_get_device_list().
//
// One question, whatever the number of devices: ports are not asked, which takes a firmware command
// each (RdmaApi::ListDevices does). Source: drivers/infiniband/core/device.c (ib_enum_all_devs).
// Threads: thread-safe. In the calling thread's network namespace. Needs no privilege.

// Names in the order of the kernel's index. kUnsupported: it has no RDMA subsystem loaded.
Result<std::vector<std::string>> RdmaDeviceOrder();

}  // namespace railhead

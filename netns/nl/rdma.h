// RDMA devices as values. Source: include/uapi/rdma/rdma_netlink.h,
// drivers/infiniband/core/nldev.c.
// Threads: values.
#pragma once

#include <cstdint>
#include <map>
#include <string>

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

}  // namespace railhead
